package load_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/lab/load"
	"github.com/ragpilot/ragpilot/internal/lab/replay"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const madeUp = "../../../docs/load/made-up"

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
	return testkit.Must(j.Simulate(t.Context(), load.CPUTiny().Server(capacity, load.Replies(j.Trace, j.MaxTokens))))(t)
}

// TestConservation: every request is answered once and in full, turns of a conversation follow each other, and conversations

// begin in trace order.

func TestConservation(t *testing.T) {
	for _, arrivals := range []string{"poisson:3", "poisson:300", "bursts:5,10", "closed:1", "closed:7"} {
		for _, policy := range []string{"retrieval", "paper"} {
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
	j := job(t, "paper", "poisson:6")
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

var errFake = errors.New("the fake fails")

// TestDrive: in real time, which a bubble makes pass at once, the clock is kept and users wait for answers.

// TestDriveRace runs many requests at once in real time, for the race detector.

// TestEvents: in virtual time the pilot hears what the cache lost, in the order of its losses.

func TestEvents(t *testing.T) {
	j := job(t, "paper", "poisson:20")
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

// TestPoissonRate: the mean rate is the one asked for, gaps are exponential, and another rate only stretches them.

// TestQueueing: an engine that serves one request at a time, whatever it is, waits as queueing theory says: with Poisson

// arrivals and a constant service time s, ρ·s / 2(1−ρ) on average (Pollaczek and Khinchine).

func TestQueueing(t *testing.T) {
	testkit.NotUnderRace(t)
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

func BenchmarkSimulate(b *testing.B) {
	j := job(b, "paper", "poisson:6")
	b.ReportAllocs()
	for b.Loop() {
		simulate(b, j, 0)
	}
}
