package testkit

import (
	"slices"
	"testing"
	"time"
)

// On a machine that others use, the mean of a call of some microseconds is mostly what the others did. So benchmarks report
// medians:
//
//	testkit.Beside(b, "search", bare, search)

// Median calls f for as long as the benchmark lasts, and reports the median time of a call as p50-ns/op beside the mean and
// the allocations. Reading the clock is in it, some 50 ns.
func Median(b *testing.B, f func()) {
	b.Helper()
	b.ReportAllocs()
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		f()
		took = append(took, time.Since(start))
	}
	report(b, took, "p50-ns/op")
}

// Added calls base and ours in turns, so that both see the same machine, and reports the medians of both and that of the
// differences of one turn: what ours adds. Allocations, with -benchmem, are those of both together: see Median for one's own.
func Added(b *testing.B, base, ours func()) {
	b.Helper()
	var bases, all, added []time.Duration
	for b.Loop() {
		start := time.Now()
		base()
		between := time.Now()
		ours()
		end := time.Now()
		bases = append(bases, between.Sub(start))
		all = append(all, end.Sub(between))
		added = append(added, end.Sub(between)-between.Sub(start))
	}
	b.ReportMetric(0, "ns/op") // leaves it out
	report(b, bases, "base-p50-ns/op")
	report(b, all, "ours-p50-ns/op")
	report(b, added, "added-p50-ns/op")
}

func report(b *testing.B, took []time.Duration, unit string) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), unit)
}

// Beside reports the medians of bare and of ours, which does more, and what ours adds, as name/bare, name/ours and name/added.
func Beside(b *testing.B, name string, bare, ours func()) {
	b.Helper()
	b.Run(name+"/bare", func(b *testing.B) { Median(b, bare) })
	b.Run(name+"/ours", func(b *testing.B) { Median(b, ours) })
	b.Run(name+"/added", func(b *testing.B) { Added(b, bare, ours) })
}
