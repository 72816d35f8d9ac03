package paper_test

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/paper"
)

// A batch is clustered by itself, with numbers of its own, and then becomes a tree or joins one: whoever keeps count of
// docs knows all of them afterwards, searches find them by their new numbers, and nothing stays when all contexts leave.
func TestTakeOver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		held := map[paper.Doc]int{}
		recorded := rapid.Bool().Draw(t, "recorded")
		batch := func(name string) ([]docs, *paper.Tree, paper.Batch) {
			sub := paper.NewTree(paper.Options{Alpha: paper.DefaultAlpha, Recorded: recorded})
			in := rapid.SliceOfN(rapid.SliceOfNDistinct(rapid.Map(rapid.IntRange(0, 12), func(i int) paper.Doc { return paper.Doc(i) }), 1, 4,
				rapid.ID), 1, 40).Draw(t, name)
			b, err := sub.Build(context.Background(), in)
			if err != nil {
				t.Fatal(err)
			}
			return in, sub, b
		}
		_, x, first := batch("first")
		x.Rename(func(d paper.Doc) paper.Doc { return d + 100 })
		x.SetHold(holding(held))
		sets, sub, second := batch("second")
		sub.Rename(func(d paper.Doc) paper.Doc { return 3*d + 200 })
		moved := map[paper.NodeID]paper.NodeID{}
		for _, k := range sub.Children(sub.Root()) {
			x.GraftChild(sub, k, func(from, to paper.NodeID) { moved[from] = to })
		}
		for i, c := range sets {
			if _, ok := moved[second.Leaves[i]]; !ok {
				continue // the batch's contexts were equal: its leaf was the root
			}
			named := docs{}
			for _, d := range c {
				named = append(named, 3*d+200)
			}
			if x.Search(named).Node == paper.None {
				t.Fatalf("nothing is found for %v", named)
			}
		}
		count := map[paper.Doc]int{}
		var walk func(n paper.NodeID)
		walk = func(n paper.NodeID) {
			for _, d := range x.Docs(n) {
				count[d]++
			}
			for _, k := range x.Children(n) {
				if x.Parent(k) != n {
					t.Fatalf("the parent of %d is %d, not %d", k, x.Parent(k), n)
				}
				walk(k)
			}
		}
		walk(x.Root())
		for d, n := range held {
			if count[d] != n {
				t.Fatalf("doc %d is held %d times, counted %d", d, n, count[d])
			}
		}
		for _, leaf := range first.Leaves {
			if leaf != x.Root() {
				x.Remove(leaf)
			}
		}
		for _, leaf := range second.Leaves {
			if to, ok := moved[leaf]; ok {
				gone := 0
				x.RemoveEach(to, func(paper.NodeID) { gone++ })
			}
		}
		if x.Len() != 1 {
			t.Fatalf("%d nodes are left", x.Len())
		}
	})
}
