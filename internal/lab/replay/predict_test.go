package replay_test

import (
	"path/filepath"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/lab/replay"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/lab/workload"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// What a plan expects in the cache is what the engine then reports, within one engine block, for every request: with
// an unlimited cache, and with one that evicts and says so.
func TestPredictionIsWhatTheEngineReports(t *testing.T) {
	testkit.NotUnderRace(t)
	for name, o := range map[string]workload.Options{
		"single turns": {Seed: 1, Contexts: 500, K: 8, Pool: 200, Zipf: 1},
		"sessions":     {Seed: 2, Sessions: 60, Turns: 5, K: 6, Pool: 200, Zipf: 1},
		"growing":      {Seed: 3, Contexts: 400, K: 20, Zipf: 1, Growing: true},
	} {
		for _, capacity := range []int{0, 20_000} {
			trc, blocks, err := workload.Generate(o)
			if err != nil {
				t.Fatal(err)
			}
			for _, policy := range []string{"best", "knowledge-tree"} {
				predict(t, name, policy, capacity, trc, blocks)
			}
		}
	}
}

// The same on recorded retrieval, with 5 % of the trace's tokens.
func TestPredictionOnOpenTraces(t *testing.T) {
	testkit.NotUnderRace(t)
	for _, name := range testkit.Traces() {
		dir := testkit.Shared(t, "traces", name)
		trc, blocks, err := trace.Load(filepath.Join(dir, "trace.jsonl"), filepath.Join(dir, "blocks.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		capacity, err := trace.CapacityTokens("5%", trc, blocks, true)
		if err != nil {
			t.Fatal(err)
		}
		predict(t, name, "best", capacity, trc, blocks)
	}
}

func predict(t *testing.T, name, policy string, capacity int, trc []trace.Request, blocks *trace.Blocks) {
	t.Helper()
	planner, err := replay.NewPlanner(replay.Settings{Policy: policy, Dedup: true, History: true}, blocks)
	if err != nil {
		t.Fatal(err)
	}
	var expected []int
	planner.Explain = func(_ trace.Request, p *contextpilot.Plan) { expected = append(expected, p.Prefix.Tokens) }
	engine := simulator(capacity, trc)
	defer engine.Subscribe(planner.Pilot().Sink(contextpilot.Scope{}))()
	talks := replay.NewTalks(trc, blocks, true, "")
	for i, q := range trc {
		_, usage := ask(t, engine, talks, q, planner.Plan(q))
		planner.Answered(q)
		if d := usage.CachedTokens - expected[i]; d > sim.DefaultBlockTokens || d < -sim.DefaultBlockTokens {
			t.Errorf("%s, %s, capacity %d, request %s (turn %d): expected %d cached tokens, the engine reports %d of %d",
				name, policy, capacity, q.ID, q.Turn, expected[i], usage.CachedTokens, usage.PromptTokens)
			return
		}
	}
}
