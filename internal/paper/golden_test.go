package paper_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/paper"
)

type docs = []paper.Doc

func equal[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// fig5 builds the tree of ContextPilot Fig. 5.
func fig5(t *testing.T) (*paper.Tree, paper.Batch) {
	t.Helper()
	tree := paper.NewTree(paper.Options{Alpha: paper.DefaultAlpha})
	b, err := tree.Build(context.Background(), []docs{{2, 1, 3}, {2, 6, 1}, {4, 1, 0}})
	if err != nil {
		t.Fatal(err)
	}
	return tree, b
}

// draw prints a tree, one node a line: path, docs.
func draw(t *paper.Tree) (lines []string) {
	var walk func(n paper.NodeID)
	walk = func(n paper.NodeID) {
		kind := ""
		if t.Leaf(n) {
			kind = " leaf"
		}
		lines = append(lines, fmt.Sprint(t.Path(n), " ", t.Docs(n), kind))
		for _, k := range t.Children(n) {
			walk(k)
		}
	}
	walk(t.Root())
	return lines
}

func TestFig5(t *testing.T) {
	tree, b := fig5(t)
	equal(t, "tree", []string{
		"[] []",
		"[0] [1]",     // C5
		"[0 0] [1 2]", // C4
		"[0 0 0] [1 2 3] leaf",
		"[0 0 1] [1 2 6] leaf",
		"[0 1] [1 4 0] leaf",
	}, draw(tree))
	equal(t, "orders", []docs{{1, 2, 3}, {1, 2, 6}, {1, 4, 0}}, b.Orders)
	// C1–C2 share {2, 1} at positions 0–0 and 1–2; C3 joins at the mean of its distances to both.
	d12 := 1 - 2.0/3 + 0.001*(1.0/2)
	d3 := (1 - 1.0/3 + 0.001*0 + 1 - 1.0/3 + 0.001*1) / 2
	for i, want := range []paper.Merge{{A: 0, B: 1, Distance: d12, Size: 2}, {A: 2, B: 3, Distance: d3, Size: 3}} {
		got := b.Merges[i]
		if math.Abs(got.Distance-want.Distance) > 1e-6 {
			t.Errorf("merge %d: distance %v, want %v", i, got.Distance, want.Distance)
		}
		got.Distance = want.Distance
		equal(t, fmt.Sprint("merge ", i), want, got)
	}
}

func TestFig6(t *testing.T) {
	tree, _ := fig5(t)
	for _, c := range []struct {
		name  string
		in    docs
		at    []int // nil: nothing is shared
		order docs
		path  []int
	}{
		{"C6", docs{2, 1, 4}, []int{0, 0}, docs{1, 2, 4}, []int{0, 0, 2}},
		{"C7", docs{5, 7, 8}, nil, docs{5, 7, 8}, []int{1}},
		{"C8", docs{1, 2, 9}, []int{0, 0}, docs{1, 2, 9}, []int{0, 0, 3}},
	} {
		m := tree.Search(c.in)
		if c.at == nil {
			equal(t, c.name+": match", paper.None, m.Node)
		} else {
			equal(t, c.name+": match", c.at, tree.Path(m.Node))
		}
		order := tree.Order(nil, c.in, m)
		equal(t, c.name+": order", c.order, order)
		equal(t, c.name+": path", c.path, tree.Path(tree.Insert(order, m)))
	}
}

// Fig. 7, with the paths that the contexts have in the tree of Fig. 5 and 6.
func TestFig7(t *testing.T) {
	names := []string{"C6", "C3", "C7", "C8"}
	order, groups := paper.Schedule([][]int{{0, 0, 2}, {0, 1}, {1}, {0, 0, 3}})
	var got []string
	for _, i := range order {
		got = append(got, names[i])
	}
	equal(t, "execution order", []string{"C6", "C8", "C3", "C7"}, got)
	equal(t, "groups", [][]int{{0, 3, 1}, {2}}, groups)
}

func TestSchedule(t *testing.T) {
	order, groups := paper.Schedule([][]int{{}, {2}, {1, 0}, {1, 0, 0}, {}, {2, 1}, {1}, {0}})
	equal(t, "larger groups first, longer paths first", [][]int{{3, 2, 6}, {0, 4}, {5, 1}, {7}}, groups)
	equal(t, "order", []int{3, 2, 6, 0, 4, 5, 1, 7}, order)
	order, groups = paper.Schedule(nil)
	equal(t, "nothing", 0, len(order)+len(groups))
}

// §4.1: four contexts of which three pairs share two docs each.
func TestDistance(t *testing.T) {
	a, b, c, d := docs{3, 5, 1, 7}, docs{2, 6, 3, 5}, docs{3, 5, 8, 9}, docs{2, 6, 4, 0}
	for _, pair := range []struct {
		name string
		x, y docs
		want float64
	}{
		{"A–B: two docs, two places apart", a, b, 0.5 + 0.001*2},
		{"B–C: the same", b, c, 0.5 + 0.001*2},
		{"B–D: two docs in their places", b, d, 0.5},
		{"A–C", a, c, 0.5},
		{"A–D share nothing", a, d, 1},
		{"A–A", a, a, 0},
		{"of two lengths", docs{1}, docs{2, 1, 3, 4}, 0.75 + 0.001},
		{"of nothing", docs{}, a, 1},
	} {
		for _, got := range []float64{paper.Distance(pair.x, pair.y, 0.001), paper.Distance(pair.y, pair.x, 0.001)} {
			if math.Abs(got-pair.want) > 1e-12 {
				t.Errorf("%s: got %v, want %v", pair.name, got, pair.want)
			}
		}
	}
	if paper.Distance(b, d, 0.001) >= paper.Distance(a, b, 0.001) {
		t.Error("B–D must be smaller than A–B")
	}
}
