package memory

import (
	"math"
	"testing"
)

// The figures are worked out by hand from the formulas of Mem0 2.x.
func TestCombine(t *testing.T) {
	near := func(got, want float64) bool { return math.Abs(got-want) < 1e-9 }
	hits := []Hit{
		{Memory: Memory{ID: "a"}, Semantic: 0.6},
		{Memory: Memory{ID: "b"}, Semantic: 0.4},
		{Memory: Memory{ID: "c"}, Semantic: 1},
	}
	combine(hits, nil, 2)
	for i, want := range []float64{0.6, 0.4, 1} {
		if !near(hits[i].Score, want) {
			t.Errorf("without words, score %v, want %v", hits[i].Score, want)
		}
	}
	combine(hits, map[string]float64{"b": 5, "c": 1000}, 2)
	for i, want := range []float64{0.3, (0.4 + 0.5) / 2, 1} {
		if !near(hits[i].Score, want) {
			t.Errorf("with words, score %v, want %v", hits[i].Score, want)
		}
	}
	for terms, c := range map[int]struct{ raw, want float64 }{
		3: {6, 1 / (1 + math.Exp(-0.7))}, 6: {8, 1 / (1 + math.Exp(-0.6))}, 9: {11, 1 / (1 + math.Exp(-1))},
		15: {12, 1 / (1 + math.Exp(-1))}, 16: {12, 0.5},
	} {
		if got := squash(c.raw, terms); !near(got, c.want) {
			t.Errorf("%d terms, %v: %v, want %v", terms, c.raw, got, c.want)
		}
	}
}
