package load_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/load"
	"github.com/ragpilot/ragpilot/internal/replay"
	"github.com/ragpilot/ragpilot/internal/tokens"
	"github.com/ragpilot/ragpilot/internal/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const madeUp = "../../docs/load/made-up"

// job replays the made-up trace.
func job(t testing.TB, policy, arrivals string) load.Job {
	t.Helper()
	trc, blocks, err := trace.Load(filepath.Join(madeUp, "trace.jsonl"), filepath.Join(madeUp, "blocks.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := load.Parse(arrivals)
	if err != nil || len(a) != 1 {
		t.Fatal(a, err)
	}
	return load.Job{
		Settings: replay.Settings{Policy: policy, Dedup: true, History: true},
		Trace:    trc, Blocks: blocks, Arrivals: a[0], Seed: 1,
	}
}

func simulate(t testing.TB, j load.Job, capacity int) load.Run {
	t.Helper()
	run, err := j.Simulate(t.Context(), load.CPUTiny().Server(capacity, load.Replies(j.Trace, j.MaxTokens)))
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// TestConservation: every request is answered once and in full, turns of a conversation follow each other, and conversations
// begin in trace order.
func TestConservation(t *testing.T) {
	for _, arrivals := range []string{"poisson:3", "poisson:300", "bursts:5,10", "closed:1", "closed:7"} {
		for _, policy := range []string{"retrieval", "contextpilot"} {
			for _, history := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%s/history=%t", arrivals, policy, history), func(t *testing.T) {
					j := job(t, policy, arrivals)
					j.Settings.History, j.Think = history, 300*time.Millisecond
					run := simulate(t, j, 4000)
					ended, first := map[string]time.Duration{}, 0
					byID := map[string]trace.Request{}
					var firsts []string
					for _, q := range j.Trace {
						byID[q.ID] = q
						if q.Turn == 1 || !history {
							firsts = append(firsts, q.ID)
						}
					}
					last := time.Duration(0)
					for _, s := range run.Sent {
						q, ok := byID[s.ID]
						if !ok {
							t.Fatalf("request %s was sent twice or never existed", s.ID)
						}
						delete(byID, s.ID)
						if s.Arrived < last || s.TTFT <= 0 || s.Total < s.TTFT {
							t.Errorf("%+v after %v", s, last)
						}
						last = s.Arrived
						if history && q.Turn > 1 && s.Arrived <= ended[q.Session] {
							t.Errorf("turn %d of %s at %v, the one before ended at %v", q.Turn, q.Session, s.Arrived, ended[q.Session])
						}
						ended[q.Session] = s.Arrived + s.Total
						if q.Turn == 1 || !history {
							if firsts[first] != s.ID {
								t.Errorf("first turn %d is %s, want %s", first, s.ID, firsts[first])
							}
							first++
						}
						if want := tokens.Count(trace.Answer(q)); s.Usage.OutputTokens != want {
							t.Errorf("%s: %d tokens, want %d", s.ID, s.Usage.OutputTokens, want)
						}
					}
					if len(byID) > 0 {
						t.Errorf("%d requests were not sent", len(byID))
					}
					if n := j.Arrivals.Size; j.Arrivals.Kind == load.Closed && run.Peak > n {
						t.Errorf("%d requests at a time, %d users", run.Peak, n)
					}
				})
			}
		}
	}
}

// TestDeterminism: the same seed gives the same run, another one another.
func TestDeterminism(t *testing.T) {
	j := job(t, "contextpilot", "poisson:6")
	j.Think = time.Second
	a, b := simulate(t, j, 5000), simulate(t, j, 5000)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
	j.Seed = 2
	if c := simulate(t, j, 5000); cmp.Equal(a.Sent, c.Sent) {
		t.Error("another seed changes nothing")
	}
}

// TestMaxTokens: all answers get that length, shorter or longer than recorded.
func TestMaxTokens(t *testing.T) {
	for _, n := range []int{1, 100} {
		j := job(t, "retrieval", "poisson:20")
		j.MaxTokens = n
		for _, s := range simulate(t, j, 0).Sent {
			if s.Usage.OutputTokens != n {
				t.Fatalf("%s: %d tokens, want %d", s.ID, s.Usage.OutputTokens, n)
			}
		}
	}
}

// TestLowRate: requests that do not meet take the time that the cost says, and the hits of one after the other.
func TestLowRate(t *testing.T) {
	j := job(t, "knowledge-tree", "poisson:0.001")
	run := simulate(t, j, 0)
	alone, err := replay.Run(t.Context(), replay.Job{
		Settings: j.Settings,
		Engine:   sim.New(sim.Options{BlockTokens: 32, Reply: load.Replies(j.Trace, 0)}),
	}, order(j, run), j.Blocks)
	if err != nil {
		t.Fatal(err)
	}
	model := load.CPUTiny()
	for i, s := range run.Sent {
		if s.Usage.CachedTokens != alone.Cached[i] {
			t.Errorf("%s: %d tokens cached, one at a time %d", s.ID, s.Usage.CachedTokens, alone.Cached[i])
		}
		want := model.Cost.Delay(s.Usage.PromptTokens)
		w := sim.PrefillWork(s.Usage.PromptTokens, s.Usage.CachedTokens, model.BatchTokens)
		if want += model.Cost.Duration(w); (s.TTFT - want).Abs() > time.Duration(w.Steps) {
			t.Errorf("%s: TTFT %v, want %v", s.ID, s.TTFT, want)
		}
	}
}

// order returns the trace in the order in which a run sent it.
func order(j load.Job, run load.Run) []trace.Request {
	byID := map[string]trace.Request{}
	for _, q := range j.Trace {
		byID[q.ID] = q
	}
	var out []trace.Request
	for _, s := range run.Sent {
		out = append(out, byID[s.ID])
	}
	return out
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	j := job(t, "retrieval", "poisson:3")
	if _, err := j.Simulate(ctx, load.H100().Server(0, nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestUnknownPolicy(t *testing.T) {
	j := job(t, "zebra", "poisson:3")
	if _, err := j.Simulate(t.Context(), load.H100().Server(0, nil)); err == nil || !strings.Contains(err.Error(), "zebra") {
		t.Errorf("simulate: %v", err)
	}
	if _, err := j.Drive(t.Context(), sim.New(sim.Options{})); err == nil || !strings.Contains(err.Error(), "zebra") {
		t.Errorf("drive: %v", err)
	}
}

// slowEngine is the simulator's engine with answers that take time.
type slowEngine struct {
	*sim.Engine
	first, rest time.Duration
	under, peak atomic.Int64
	calls       atomic.Int64
	failAt      int64 // call that fails; 0: none
}

var errFake = errors.New("the fake fails")

func (e *slowEngine) Generate(ctx context.Context, req engines.Request, onText func(string) error) (engines.Response, error) {
	e.peak.Store(max(e.peak.Load(), e.under.Add(1)))
	defer e.under.Add(-1)
	if e.calls.Add(1) == e.failAt {
		return engines.Response{}, errFake
	}
	resp, err := e.Engine.Generate(ctx, req, onText)
	if err != nil {
		return resp, err
	}
	select {
	case <-ctx.Done():
		return resp, ctx.Err()
	case <-time.After(e.first + e.rest):
	}
	resp.TTFT, resp.Total = e.first, e.first+e.rest
	return resp, nil
}

func newSlow(j load.Job) *slowEngine {
	return &slowEngine{Engine: sim.New(sim.Options{Reply: load.Replies(j.Trace, 0)}), first: 50 * time.Millisecond, rest: 150 * time.Millisecond}
}

// TestDrive: in real time, which a bubble makes pass at once, the clock is kept and users wait for answers.
func TestDrive(t *testing.T) {
	for _, arrivals := range []string{"poisson:10", "bursts:10,5", "closed:6"} {
		t.Run(arrivals, func(t *testing.T) {
			j := job(t, "contextpilot", arrivals)
			j.Think = 100 * time.Millisecond
			synctest.Test(t, func(t *testing.T) {
				engine := newSlow(j)
				run, err := j.Drive(t.Context(), engine)
				if err != nil {
					t.Fatal(err)
				}
				if len(run.Sent) != len(j.Trace) || run.HitRatio() <= 0 {
					t.Errorf("%d of %d, hit ratio %f", len(run.Sent), len(j.Trace), run.HitRatio())
				}
				for _, s := range run.Sent {
					if s.TTFT != 50*time.Millisecond || s.Total != 200*time.Millisecond {
						t.Fatalf("%+v", s)
					}
				}
				if j.Arrivals.Kind == load.Closed {
					if engine.peak.Load() != 6 || run.Peak != 6 {
						t.Errorf("%d at the engine, %d counted at a time, want 6", engine.peak.Load(), run.Peak)
					}
					return
				}
				starts := j.Arrivals.Starts(120, j.Seed)
				at := map[time.Duration]bool{}
				for _, s := range run.Sent {
					at[s.Arrived] = true
				}
				for _, s := range starts {
					if !at[s] {
						t.Fatalf("no conversation began at %v", s)
					}
				}
			})
		})
	}
}

// TestDriveRace runs many requests at once in real time, for the race detector.
func TestDriveRace(t *testing.T) {
	for _, arrivals := range []string{"poisson:2000", "closed:16"} {
		j := job(t, "contextpilot", arrivals)
		engine := newSlow(j)
		engine.first, engine.rest = time.Millisecond, time.Millisecond
		if _, err := j.Drive(t.Context(), engine); err != nil {
			t.Error(err)
		}
	}
}

func TestDriveEnds(t *testing.T) {
	j := job(t, "contextpilot", "poisson:5")
	synctest.Test(t, func(t *testing.T) {
		engine := newSlow(j)
		engine.failAt = 20
		if _, err := j.Drive(t.Context(), engine); !errors.Is(err, errFake) || !strings.Contains(err.Error(), "contextpilot") {
			t.Errorf("failure: got %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		if _, err := j.Drive(ctx, newSlow(j)); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 3*time.Second {
			t.Errorf("deadline: got %v after %v", err, time.Since(start))
		}
		for _, arrivals := range []string{"closed:4", "closed:1000"} {
			j := job(t, "contextpilot", arrivals)
			engine := newSlow(j)
			engine.failAt = 20
			if _, err := j.Drive(t.Context(), engine); !errors.Is(err, errFake) {
				t.Errorf("%s: got %v", arrivals, err)
			}
		}
	})
}

// TestEvents: in virtual time the pilot hears what the cache lost, in the order of its losses.
func TestEvents(t *testing.T) {
	j := job(t, "contextpilot", "poisson:20")
	server := load.CPUTiny().Server(3000, load.Replies(j.Trace, 0))
	served, lost := map[string]bool{}, 0
	defer server.Subscribe(func(events ...contextpilot.Event) {
		for _, e := range events {
			switch e.Kind {
			case contextpilot.Served:
				served[e.Request] = true
			case contextpilot.Shrunk, contextpilot.Gone:
				lost++
				if !served[e.Request] {
					t.Errorf("%v for %s, which was not served yet", e.Kind, e.Request)
				}
			}
		}
	})()
	if _, err := j.Simulate(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	if len(served) != len(j.Trace) || lost == 0 {
		t.Errorf("%d of %d served, %d losses", len(served), len(j.Trace), lost)
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string][]string{
		"poisson:2": {"poisson:2"}, "poisson:0.5,4": {"poisson:0.5", "poisson:4"},
		"bursts:2,8": {"bursts:2,8"}, "bursts:2,4,8": {"bursts:2,8", "bursts:4,8"}, "closed:1,16": {"closed:1", "closed:16"},
	} {
		got, err := load.Parse(text)
		var names []string
		for _, a := range got {
			names = append(names, a.String())
		}
		if diff := cmp.Diff(want, names); diff != "" || err != nil {
			t.Errorf("%s: %v %s", text, err, diff)
		}
	}
	for _, text := range []string{
		"", "poisson", "poisson:", "poisson:0", "poisson:-1", "poisson:x", "poisson:NaN", "poisson:Inf", "poisson:1,", "bursts:4", "bursts:4,0", "bursts:,4",
		"bursts:4,1.5", "closed:0", "closed:1.5", "closed:", "uniform:3", "Poisson:3",
	} {
		if got, err := load.Parse(text); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// TestPoissonRate: the mean rate is the one asked for, gaps are exponential, and another rate only stretches them.
func TestPoissonRate(t *testing.T) {
	const n = 200_000
	for _, arrivals := range []string{"poisson:4", "bursts:4,8"} {
		a, err := load.Parse(arrivals)
		if err != nil {
			t.Fatal(err)
		}
		starts := a[0].Starts(n, 3)
		if rate := n / starts[n-1].Seconds(); math.Abs(rate-4) > 0.08 {
			t.Errorf("%s: rate %f", arrivals, rate)
		}
		size := max(a[0].Size, 1)
		mean, square := 0.0, 0.0
		for i := size; i < n; i += size {
			gap := (starts[i] - starts[i-1]).Seconds()
			mean += gap * float64(size) / n
			square += gap * gap * float64(size) / n
		}
		if spread := math.Sqrt(square-mean*mean) / mean; math.Abs(spread-1) > 0.03 {
			t.Errorf("%s: coefficient of variation %f, want 1", arrivals, spread)
		}
		double := a[0]
		double.Rate *= 2
		for i, s := range double.Starts(1000, 3) {
			if d := 2*s - starts[i]; d.Abs() > 2 {
				t.Fatalf("%s: start %d at %v, at twice the rate at %v", arrivals, i, starts[i], s)
			}
		}
		if size > 1 && (starts[0] != starts[size-1] || starts[0] == starts[size]) {
			t.Errorf("%s: not bursts: %v", arrivals, starts[:size+1])
		}
	}
}

func TestSummary(t *testing.T) {
	run := func(policy string, ttft ...int) load.Run {
		r := load.Run{Policy: policy, Arrivals: load.Arrivals{Kind: load.Poisson, Rate: 2}}
		for i, ms := range ttft {
			r.Sent = append(r.Sent, load.Sent{
				Arrived: time.Duration(i) * time.Second, TTFT: time.Duration(ms) * time.Millisecond, Total: time.Second,
				Usage: engines.Usage{PromptTokens: 100, CachedTokens: 10 * i, OutputTokens: 20, CachedKnown: true},
			})
		}
		return r
	}
	first := []load.Run{run("a", 100, 200), run("a", 100, 200), run("a", 100, 200)}
	p := load.Summarise([]load.Run{run("b", 10, 20), run("b", 10, 40), run("b", 10, 60)}, first)
	near := func(name string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-3 {
			t.Errorf("%s: %f, want %f", name, got, want)
		}
	}
	near("mean", p.TTFT95.Mean, 40)
	near("half width", p.TTFT95.Half, 4.303*20/math.Sqrt(3))
	near("least", p.TTFT95.Min, 20)
	near("most", p.TTFT95.Max, 60)
	near("ratio", p.TTFT95Vs.Mean, 0.2)
	near("tokens per second", p.Output.Mean, 40.0/2)
	near("hits", p.Hit.Mean, 0.05)
	near("computed", p.Computed.Mean, 190)
	near("last tenth", p.Progress[9].Mean, 0.1)
	near("first tenth", p.Progress[0].Mean, 0)
	if p.Policy != "b" || p.Against != "a" || p.Seeds != 3 || p.Requests != 2 || !p.HitKnown || p.Arrivals != "poisson:2" {
		t.Errorf("%+v", p)
	}
	one := load.Summarise(first[:1], first[:1])
	if one.TTFT95.Half != 0 {
		t.Errorf("one run has the interval %+v", one.TTFT95)
	}
	if _, err := json.Marshal(one); err != nil {
		t.Error(err)
	}
	for name, x := range map[string]float64{"TTFT": float64(load.Run{}.TTFT(0.5)), "rate": load.Run{}.OutputRate(), "hits": load.Run{}.HitRatio()} {
		if x != 0 {
			t.Errorf("%s of an empty run: %f", name, x)
		}
	}
}

func TestFindRate(t *testing.T) {
	for _, limit := range []float64{0.03, 1, 3.7, 8, 5000} {
		for _, start := range []float64{0.1, 4, 100} {
			tries := 0
			got, err := load.FindRate(start, time.Second, func(rate float64) (load.Run, error) {
				tries++
				return load.Run{Sent: []load.Sent{{TTFT: time.Duration(rate / limit * float64(time.Second))}}}, nil
			})
			if err != nil || got > limit || got < limit*0.99 || tries > 40 {
				t.Errorf("limit %g from %g: %g in %d tries, %v", limit, start, got, tries, err)
			}
		}
	}
	for _, ttft := range []time.Duration{0, time.Hour} {
		if _, err := load.FindRate(1, time.Second, func(float64) (load.Run, error) {
			return load.Run{Sent: []load.Sent{{TTFT: ttft}}}, nil
		}); err == nil || !strings.Contains(err.Error(), "1s") {
			t.Errorf("TTFT always %v: %v", ttft, err)
		}
	}
	if _, err := load.FindRate(1, time.Second, func(float64) (load.Run, error) { return load.Run{}, errFake }); !errors.Is(err, errFake) {
		t.Errorf("got %v", err)
	}
	s := load.Sustain("b", 2*time.Second, []float64{3, 6}, "a", []float64{2, 4})
	if s.VsFirst.Mean != 1.5 || s.VsFirst.Half != 0 || s.Rate.Mean != 4.5 || s.Bound != 2000 {
		t.Errorf("%+v", s)
	}
}

// TestQueueing: an engine that serves one request at a time, whatever it is, waits as queueing theory says: with Poisson
// arrivals and a constant service time s, ρ·s / 2(1−ρ) on average (Pollaczek and Khinchine).
func TestQueueing(t *testing.T) {
	const n, service = 40_000, 10 * time.Millisecond
	blocks, err := trace.NewBlocks(trace.Block{ID: "d", Text: "text"})
	if err != nil {
		t.Fatal(err)
	}
	var trc []trace.Request
	for i := range n {
		id := fmt.Sprint(i)
		trc = append(trc, trace.Request{ID: id, Session: id, Turn: 1, Query: "?", Docs: []string{"d"}, Answer: "x"})
	}
	for _, utilisation := range []float64{0.5, 0.8} {
		j := load.Job{
			Settings: replay.Settings{Policy: "retrieval"}, Trace: trc, Blocks: blocks, Seed: 4, MaxTokens: 1,
			Arrivals: load.Arrivals{Kind: load.Poisson, Rate: utilisation / service.Seconds()},
		}
		server := sim.NewServer(sim.ServerOptions{MaxRunning: 1, StepCost: sim.StepCost{Step: float64(service)}})
		run, err := j.Simulate(t.Context(), server)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, s := range run.Sent {
			sum += (s.Total - service).Seconds()
		}
		want := utilisation * service.Seconds() / 2 / (1 - utilisation)
		if got := sum / n; math.Abs(got/want-1) > 0.06 {
			t.Errorf("load %g: mean wait %f s, want %f", utilisation, got, want)
		}
	}
}

// FuzzParse: whatever is asked for is refused, or has a rate or users.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"poisson:2", "bursts:1,2,3", "closed:4", "poisson:1e309", ":"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := load.Parse(text)
		if err == nil && len(got) == 0 {
			t.Errorf("%q: nothing", text)
		}
		for _, a := range got {
			if !(a.Level() > 0) || math.IsInf(a.Level(), 0) {
				t.Errorf("%q: %+v", text, a)
			}
		}
	})
}

func BenchmarkSimulate(b *testing.B) {
	j := job(b, "contextpilot", "poisson:6")
	b.ReportAllocs()
	for b.Loop() {
		simulate(b, j, 0)
	}
}
