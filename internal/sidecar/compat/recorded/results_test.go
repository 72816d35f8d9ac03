package recorded

import (
	"context"
	"runtime"
	"slices"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/internal/paper"
)

// The index is bounded, numbers are used again, and every answer is a permutation.
func TestResultIndexIsBounded(t *testing.T) {
	x := newResultIndex(50, paper.DefaultAlpha, paper.Average)
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

func named(numbers ...int) (keys []xxh3.Uint128) {
	for _, n := range numbers {
		keys = append(keys, xxh3.Uint128{Lo: uint64(n)})
	}
	return keys
}

// The index gives back what it held at its peak, and counts what it holds.
func TestResultIndexGivesMemoryBack(t *testing.T) {
	x := newResultIndex(5000, paper.DefaultAlpha, paper.Average)
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // of what was waiting to be finalised
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := heap()
	for i := range 1000 {
		keys := make([]xxh3.Uint128, 50)
		for j := range keys {
			keys[j] = xxh3.Uint128{Lo: uint64(i), Hi: uint64(j)}
		}
		x.order(t.Context(), keys)
	}
	full := heap() - before
	if x.bytes < full*7/10 || x.bytes > full*2 {
		t.Errorf("%d bytes are counted, the heap has %d", x.bytes, full)
	}
	for n := x.dropOldest(); n > 0; {
		n = x.dropOldest()
	}
	left := heap() - before
	t.Logf("%d bytes, %d after all was dropped", full, left)
	if left > full/20 || x.bytes > full/20 {
		t.Errorf("%d bytes of heap are left of %d, and %d are counted", left, full, x.bytes)
	}
	runtime.KeepAlive(x)
}
