package replay_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/lab/replay"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func planOnline(t *testing.T, set replay.Settings, trc []trace.Request, blocks *trace.Blocks) []trace.Plan {
	t.Helper()
	p, err := replay.NewPlanner(set, blocks)
	if err != nil {
		t.Fatal(err)
	}
	var out []trace.Plan
	for _, q := range trc {
		out = append(out, p.Plan(q))
		p.Answered(q)
	}
	return out
}

// everySetting calls f for each policy and each way of planning.
func everySetting(t *testing.T, f func(t *testing.T, set replay.Settings)) {
	for _, policy := range contextpilot.PolicyNames() {
		for _, history := range []bool{true, false} {
			for _, dedup := range []bool{true, false} {
				for _, capacity := range []int{0, 3000} {
					set := replay.Settings{Policy: policy, History: history, Dedup: dedup, Capacity: capacity}
					if !dedup {
						set.Notes.Hint = contextpilot.HintNone
					}
					t.Run(fmt.Sprintf("%s/history=%t/dedup=%t/capacity=%d", policy, history, dedup, capacity), func(t *testing.T) { f(t, set) })
				}
			}
		}
	}
}

func TestPlansAreValid(t *testing.T) {
	testkit.NotUnderRace(t)
	trc, blocks := generate(t, 1, 150, 14)
	everySetting(t, func(t *testing.T, set replay.Settings) {
		if err := validate(trc, planOnline(t, set, trc, blocks), true, set.History); err != nil {
			t.Errorf("online: %v", err)
		}
		p, err := replay.NewPlanner(set, blocks)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := p.PlanAll(context.Background(), trc, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(trc, plan, false, set.History); err != nil {
			t.Errorf("offline: %v", err)
		}
		if n := p.Pilot().Stats().Faults(); n != 0 {
			t.Errorf("%d faults", n)
		}
	})
}

// TestOnlineLaw: the plan of the first n requests is the beginning of the plan of all.
func TestOnlineLaw(t *testing.T) {
	testkit.NotUnderRace(t)
	trc, blocks := generate(t, 2, 120, 10)
	everySetting(t, func(t *testing.T, set replay.Settings) {
		whole := planOnline(t, set, trc, blocks)
		for _, n := range []int{1, 47, 119} {
			if diff := cmp.Diff(whole[:n], planOnline(t, set, trc[:n], blocks)); diff != "" {
				t.Errorf("first %d (-whole +alone):\n%s", n, diff)
			}
		}
	})
}

func TestReferencesAndHints(t *testing.T) {
	trc, blocks := generate(t, 3, 200, 12)
	count := func(set replay.Settings) (refs, hints int) {
		for _, p := range planOnline(t, set, trc, blocks) {
			refs += len(p.Refs)
			if p.Hint != "" {
				hints++
			}
		}
		return refs, hints
	}
	if refs, hints := count(replay.Settings{Policy: "paper", History: true, Dedup: true}); refs == 0 || hints == 0 {
		t.Errorf("%d references, %d hints", refs, hints)
	}
	if refs, hints := count(replay.Settings{
		Policy: "paper", History: true,
		Notes: contextpilot.Notes{Hint: contextpilot.HintNone},
	}); refs != 0 || hints != 0 {
		t.Errorf("off: %d references, %d hints", refs, hints)
	}
	if refs, hints := count(replay.Settings{Policy: "retrieval", Dedup: true}); refs != 0 || hints != 0 {
		t.Errorf("without history, in retrieval order: %d references, %d hints", refs, hints)
	}
}

func TestFirstK(t *testing.T) {
	trc, blocks := generate(t, 4, 60, 12)
	cut := make([]trace.Request, len(trc))
	for i, q := range trc {
		cut[i] = q
		cut[i].Docs = q.Docs[:min(5, len(q.Docs))]
	}
	set := replay.Settings{Policy: "paper", History: true, Dedup: true}
	want := planOnline(t, set, cut, blocks)
	set.K = 5
	if diff := cmp.Diff(want, planOnline(t, set, trc, blocks)); diff != "" {
		t.Errorf("--k 5 (-cut before +cut by the planner):\n%s", diff)
	}
}

func TestRun(t *testing.T) {
	trc, blocks := generate(t, 5, 200, 12)
	answers := map[string]string{}
	for _, q := range trc {
		answers[replay.RequestID(q)] = trace.Answer(q)
	}
	run := func(t *testing.T, policy string, capacity int, offline bool) replay.Result {
		t.Helper()
		res, err := replay.Run(context.Background(), replay.Job{
			Settings: replay.Settings{Policy: policy, History: true, Dedup: true},
			Offline:  offline, Exact: true,
			Engine: sim.New(sim.Options{CapacityTokens: capacity, Reply: func(r engines.Request) string { return answers[r.ID] }}),
		}, trc, blocks)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	plain := run(t, "retrieval", 0, false)
	if plain.Requests != len(trc) || !plain.CachedKnown || plain.DocTokens == 0 || plain.Quantile(0.95) < plain.Quantile(0.5) {
		t.Errorf("plain: %+v", plain)
	}
	for _, capacity := range []int{0, 4000} {
		for _, offline := range []bool{false, true} {
			plain, ours := run(t, "retrieval", capacity, offline), run(t, "paper", capacity, offline)
			if ours.DocSaved() <= plain.DocSaved() {
				t.Errorf("capacity %d, offline %t: doc saved %.3f, plain %.3f", capacity, offline, ours.DocSaved(), plain.DocSaved())
			}
		}
	}
}

func TestRunStopsWithTheEngine(t *testing.T) {
	trc, blocks := generate(t, 6, 20, 5)
	broken := errors.New("out of memory")
	_, err := replay.Run(context.Background(), replay.Job{
		Settings: replay.Settings{Policy: "retrieval", History: true},
		Engine: sim.New(sim.Options{Fault: func(r engines.Request) *sim.Fault {
			if r.ID == "rq7" {
				return &sim.Fault{After: 2, Err: broken}
			}
			return nil
		}}),
	}, trc, blocks)
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want the engine's error", err)
	}
}

func TestUnknownPolicy(t *testing.T) {
	_, err := replay.NewPlanner(replay.Settings{Policy: "alphabetical"}, &trace.Blocks{})
	if !errors.Is(err, contextpilot.ErrUnknownPolicy) {
		t.Errorf("got %v", err)
	}
}
