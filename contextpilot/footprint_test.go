package contextpilot_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// held runs f and returns the bytes of heap that its result holds.
func held[T any](f func() T) (T, uint64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	v := f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return v, after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc)
}

// BenchmarkFootprint reports what the index holds per live request, and the time to plan it, as the index grows.
func BenchmarkFootprint(b *testing.B) {
	for _, policy := range []string{"paper", "knowledge-tree"} {
		for _, k := range []int{15, 100} {
			for _, live := range []int{1_000, 10_000, 50_000} {
				if k == 100 && live > 10_000 {
					continue
				}
				b.Run(fmt.Sprintf("%s/k=%d/live=%d", policy, k, live), func(b *testing.B) {
					sets := contexts(live, k)
					for b.Loop() {
						p, bytes := held(func() *contextpilot.Pilot { return loaded(b, policy, live, sets) })
						b.ReportMetric(float64(bytes)/float64(live), "B/request")
						runtime.KeepAlive(p)
					}
				})
			}
		}
	}
}

// BenchmarkFootprintSession reports what a conversation of eight turns holds, index included, its texts excluded.
func BenchmarkFootprintSession(b *testing.B) {
	const sessions, turns, k = 500, 8, 10
	sets := contexts(sessions*turns, k)
	for b.Loop() {
		var ends []contextpilot.Position // which the client holds
		p, bytes := held(func() *contextpilot.Pilot {
			p := newPilot(b, contextpilot.Config{})
			for s := range sessions {
				var prior []string
				var at contextpilot.Position
				for t := range turns {
					i := s*turns + t
					plan := p.Plan(contextpilot.Request{ID: fmt.Sprint(i), Session: fmt.Sprint("s", s), Blocks: sets[i], Prior: prior, Behind: at})
					prior, at = append(prior, plan.Context(), "answer"), plan.End
				}
				ends = append(ends, at)
			}
			return p
		})
		b.ReportMetric(float64(bytes)/sessions, "B/session")
		runtime.KeepAlive(p)
		runtime.KeepAlive(ends)
	}
}
