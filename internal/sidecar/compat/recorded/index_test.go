package recorded_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/paper"
	"github.com/ragpilot/ragpilot/internal/sidecar/compat/recorded"
)

func TestEvict(t *testing.T) {
	x := recorded.NewIndex(paper.Options{Alpha: paper.DefaultAlpha})
	st, err := x.Add(context.Background(), [][]paper.Doc{{2, 1, 3}, {2, 6, 1}, {4, 1, 0}, {}})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "ids", []string{"r1", "r2", "r3", "r4"}, st.IDs)
	check(t, "unknown", 0, x.Evict("r9", "", "R1"))
	check(t, "an empty context has nothing to evict", 0, x.Evict("r4"))
	check(t, "known, twice", 1, x.Evict("r1", "r1"))
	check(t, "the rest", 2, x.Evict("r2", "r1", "r3"))
	check(t, "nodes", 1, x.Len())
	again, err := x.Add(context.Background(), [][]paper.Doc{{1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "numbers are not given twice", []string{"r5"}, again.IDs)
	check(t, "matched", 0, again.Matched)
}

func TestAddCancelled(t *testing.T) {
	x := recorded.NewIndex(paper.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := x.Add(ctx, [][]paper.Doc{{1}, {2}}); !errors.Is(err, context.Canceled) {
		t.Errorf("first batch: %v", err)
	}
	check(t, "nodes", 1, x.Len())
	if _, err := x.Add(context.Background(), [][]paper.Doc{{1}, {2}}); err != nil {
		t.Fatal(err)
	}
	before := x.Len()
	if _, err := x.Add(ctx, [][]paper.Doc{{3}, {4}}); !errors.Is(err, context.Canceled) {
		t.Errorf("incremental batch: %v", err)
	}
	check(t, "nodes", before, x.Len())
}

// Any batches and evictions: orders are permutations, the execution order is one, and evicting all leaves the root.
func TestIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := recorded.NewIndex(paper.Options{Alpha: paper.DefaultAlpha, Linkage: paper.Linkage(rapid.IntRange(0, 2).Draw(t, "linkage"))})
		var ids []string
		for range rapid.IntRange(1, 4).Draw(t, "batches") {
			batch := rapid.SliceOfN(rapid.SliceOfNDistinct(rapid.Map(rapid.IntRange(0, 9), func(i int) paper.Doc { return paper.Doc(i) }), 0, 4,
				rapid.ID), 0, 6).
				Draw(t, "batch")
			st, err := x.Add(context.Background(), batch)
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range batch {
				if !slices.Equal(slices.Sorted(slices.Values(st.Orders[i])), slices.Sorted(slices.Values(c))) {
					t.Fatalf("order %v of %v", st.Orders[i], c)
				}
			}
			var all []int
			for i := range batch {
				all = append(all, i)
			}
			if !slices.Equal(slices.Sorted(slices.Values(st.Order)), all) ||
				!slices.Equal(slices.Sorted(slices.Values(slices.Concat(st.Groups...))), all) {
				t.Fatalf("execution order %v, groups %v of %d", st.Order, st.Groups, len(batch))
			}
			ids = append(ids, st.IDs...)
			if len(ids) > 0 {
				x.Evict(rapid.SampledFrom(ids).Draw(t, "evict"))
			}
		}
		x.Evict(ids...)
		if x.Len() != 1 && len(x.Tree().Children(x.Tree().Root())) > 0 {
			t.Fatalf("%d nodes are left", x.Len())
		}
	})
}
