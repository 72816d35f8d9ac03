package proxy

import (
	"context"
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/internal/cluster"
)

// The index is bounded, numbers are used again, and every answer is a permutation.
func TestToolIndexIsBounded(t *testing.T) {
	x := newToolIndex(50, cluster.DefaultAlpha, cluster.Average)
	for i := range 2000 {
		keys := named(i%7, 100+i, 3000+i/2)
		got := slices.Sorted(slices.Values(x.order(t.Context(), keys)))
		if !slices.Equal(got, []int{0, 1, 2}) {
			t.Fatalf("result %d: %v is no permutation", i, got)
		}
	}
	if n := x.numbers.Len(); n > 3*50+10 {
		t.Errorf("%d documents are known, 50 results have at most 150", n)
	}
	if got := x.order(t.Context(), named(-1, -1, -2)); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("repeated keys: %v", got)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if got := x.order(gone, named(-3, -2)); got != nil {
		t.Errorf("a client that has gone: %v, which would be remembered", got)
	}
}

func named(numbers ...int) (keys []content) {
	for _, n := range numbers {
		keys = append(keys, content{Lo: uint64(n)})
	}
	return keys
}
