package offline

import (
	"slices"
	"testing"
)

// A leaf that joins a node which all of its prompts go through is settled among that node's children, too: it shares with one of
// them what it can.
func TestSettleGoesOnBelow(t *testing.T) {
	f := newForest([]int64{1, 1, 1, 1, 1, 1}, 3)
	for v, seg := range [][]int32{1: {2, 3}, 2: {4}, 3: {1, 2, 5}} {
		if v > 0 {
			f.setSeg(int32(v), seg)
		}
	}
	inner := f.alloc() // block 1, which the prompts of leaves 1 and 2 begin with
	f.setSeg(inner, []int32{1})
	f.link(inner, root)
	f.link(1, inner)
	f.link(2, inner)
	f.link(3, root)
	f.settle(inner)
	if f.cost != 5 {
		t.Errorf("%d blocks in the forest, want 5: each of the sets' blocks once", f.cost)
	}
	for leaf, want := range [][]int32{1: {1, 2, 3}, 2: {1, 4}, 3: {1, 2, 5}} {
		var set []int32
		for v := int32(leaf); leaf > 0 && v != root; v = f.nodes[v].up {
			set = append(set, f.nodes[v].seg...)
		}
		slices.Sort(set)
		if !slices.Equal(set, want) {
			t.Errorf("leaf %d has blocks %v, want %v", leaf, set, want)
		}
	}
}
