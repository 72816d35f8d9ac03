package replay_test

import (
	"fmt"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/lab/replay"
	"github.com/ragpilot/ragpilot/internal/lab/workload"
)

// firstTurns is `ragpilot trace gen --seed 1 --contexts n --k k --pool n/3 --zipf 1.0 --topics n/50`.
func firstTurns(tb testing.TB, n, k int) []contextpilot.Request {
	tb.Helper()
	trc, blocks, err := workload.Generate(workload.Options{Seed: 1, Contexts: n, K: k, Pool: max(n/3, 2*k), Zipf: 1, Topics: max(n/50, 1)})
	if err != nil {
		tb.Fatal(err)
	}
	return replay.FirstTurns(trc, blocks, 0)
}

// BenchmarkPlan plans further requests with so many contexts live: every one drives out the oldest.
func BenchmarkPlan(b *testing.B) {
	for _, c := range []struct{ k, live int }{{15, 10_000}, {15, 100_000}, {100, 10_000}} {
		b.Run(fmt.Sprintf("k=%d/live=%d", c.k, c.live), func(b *testing.B) {
			reqs := firstTurns(b, c.live+5000, c.k)
			pilot, err := contextpilot.New(contextpilot.Config{MaxRequests: c.live})
			if err != nil {
				b.Fatal(err)
			}
			for _, r := range reqs[:c.live] {
				pilot.Plan(r)
			}
			rest := reqs[c.live:]
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				r := rest[i%len(rest)]
				r.ID = ""
				pilot.Plan(r)
				i++
			}
		})
	}
}

func TestMeasureCost(t *testing.T) {
	reqs := firstTurns(t, 400, 10)
	r, err := replay.MeasureCost(contextpilot.Config{Policy: "best"}, reqs, 50)
	if err != nil {
		t.Fatal(err)
	}
	if r.Policy != "best" || r.Live != 250 || r.Plans != 50 || r.P50 <= 0 || r.P50 > r.P99 || r.P99 > r.Max || r.BytesPerLive < 100 ||
		r.Allocs < 1 || r.PerSecond <= 0 || r.PerSecondAll <= 0 || r.HitBlocks <= 0 {
		t.Errorf("%+v", r)
	}
	if _, err := replay.MeasureCost(contextpilot.Config{}, reqs, 200); err == nil {
		t.Error("too few requests: no error")
	}
	if _, err := replay.MeasureCost(contextpilot.Config{Policy: "none"}, reqs, 50); err == nil {
		t.Error("unknown policy: no error")
	}
}

// BenchmarkPlanBatch plans a whole batch: identities, order, schedule, index.
func BenchmarkPlanBatch(b *testing.B) {
	for _, n := range []int{2_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("k=15/n=%d", n), func(b *testing.B) {
			reqs := firstTurns(b, n, 15)
			b.ReportAllocs()
			for b.Loop() {
				pilot, err := contextpilot.New(contextpilot.Config{})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := pilot.PlanBatch(b.Context(), reqs); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
