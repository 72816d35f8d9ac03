package testkit_test

import (
	"testing"

	"github.com/ragpilot/ragpilot/internal/testkit"
)

// Medians are reported under their names, and both sides are called equally often. What they are depends on the machine: no
// test asks.
func TestReports(t *testing.T) {
	calls := 0
	median := testing.Benchmark(func(b *testing.B) { testkit.Median(b, func() { calls++ }) })
	if calls < median.N || median.Extra["p50-ns/op"] < 0 {
		t.Errorf("%d calls of %d, %v", calls, median.N, median.Extra)
	}
	bases, ours := 0, 0
	added := testing.Benchmark(func(b *testing.B) { testkit.Added(b, func() { bases++ }, func() { ours++ }) })
	if bases != ours || bases < added.N {
		t.Errorf("%d and %d calls, want as many of both, %d", bases, ours, added.N)
	}
	for _, unit := range []string{"base-p50-ns/op", "ours-p50-ns/op", "added-p50-ns/op"} {
		if _, ok := added.Extra[unit]; !ok {
			t.Errorf("no %s in %v", unit, added.Extra)
		}
	}
}
