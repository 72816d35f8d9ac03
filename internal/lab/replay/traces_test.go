package replay_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/lab/replay"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// TestOpenTraces: on each open trace and for each policy the plan is valid, online and offline, without a fault,
// and the online law holds at three cuts.
func TestOpenTraces(t *testing.T) {
	testkit.NotUnderRace(t)
	for _, name := range testkit.Traces() {
		t.Run(name, func(t *testing.T) {
			trc, blocks := openTrace(t, name)
			for _, policy := range contextpilot.PolicyNames() {
				t.Run(policy, func(t *testing.T) {
					set := replay.Settings{Policy: policy, History: true, Dedup: true}
					whole := planOnline(t, set, trc, blocks)
					if err := validate(trc, whole, true, true); err != nil {
						t.Errorf("online: %v", err)
					}
					parts := []int{len(trc) / 7, len(trc) / 3, len(trc) - 1}
					if testing.Short() {
						parts = parts[:1]
					}
					for _, n := range parts {
						if diff := cmp.Diff(whole[:n], planOnline(t, set, trc[:n], blocks)); diff != "" {
							t.Errorf("first %d (-whole +alone):\n%.2000s", n, diff)
						}
					}
					p, err := replay.NewPlanner(set, blocks)
					if err != nil {
						t.Fatal(err)
					}
					offline, err := p.PlanAll(context.Background(), trc, 1)
					if err != nil {
						t.Fatal(err)
					}
					if err := validate(trc, offline, false, true); err != nil {
						t.Errorf("offline: %v", err)
					}
					if n := p.Pilot().Stats().Faults(); n != 0 {
						t.Errorf("%d faults", n)
					}
				})
			}
		})
	}
}
