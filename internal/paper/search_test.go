package paper_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/paper"
)

// nearest is §4.2 by looking at every child: the child of least distance that shares a doc, inner nodes before
// leaves, then the first; level if all of two or more are equally far.
func nearest(t *paper.Tree, n paper.NodeID, c docs, alpha float64) (best paper.NodeID, level bool) {
	best, level = paper.None, len(t.Children(n)) > 1
	least := 0.0
	for i, k := range t.Children(n) {
		d := paper.Distance(c, t.Docs(k), alpha)
		if i > 0 && d != paper.Distance(c, t.Docs(t.Children(n)[0]), alpha) {
			level = false
		}
		if d == 1 && shared(c, t.Docs(k)) == 0 {
			level = false
			continue
		}
		if best == paper.None || d < least || d == least && t.Leaf(best) && !t.Leaf(k) {
			best, least = k, d
		}
	}
	return best, level
}

func shared(a, b docs) (n int) {
	for _, d := range a {
		if slices.Contains(b, d) {
			n++
		}
	}
	return n
}

// search is Alg. 1 on top of nearest.
func search(t *paper.Tree, c docs, alpha float64) paper.Match {
	at := paper.Match{Node: paper.None}
	for cur := t.Root(); ; {
		best, level := nearest(t, cur, c, alpha)
		if best == paper.None || level && shared(c, t.Docs(best)) == at.Shared {
			return at
		}
		at = paper.Match{Node: best, Shared: shared(c, t.Docs(best)), Prefix: slices.Contains(c, t.Docs(best)[0])}
		if !at.Prefix || len(t.Children(best)) == 0 {
			return at
		}
		cur = best
	}
}

// contexts gives random contexts of distinct docs below top; the lower a doc, the more contexts have it.
func contexts(t *rapid.T) (next func() docs) {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	top := rapid.SampledFrom([]float64{8, 60, 600}).Draw(t, "docs")
	skew := rapid.SampledFrom([]float64{1, 2, 4}).Draw(t, "skew")
	popular := rapid.SampledFrom([]docs{nil, {0, 1}}).Draw(t, "in most contexts")
	return func() docs {
		var c docs
		if r.IntN(4) > 0 {
			c = slices.Clone(popular)
		}
		for n := len(c) + 1 + r.IntN(5); len(c) < n; {
			if d := paper.Doc(top * math.Pow(r.Float64(), skew)); !slices.Contains(c, d) {
				c = append(c, d)
			}
		}
		return c
	}
}

// built: nothing was inserted since Build: then a node's docs begin those of all below. (A context that
// is inserted may lack a doc of the node that it was matched with.)
func checkTree(t *paper.Tree, held map[paper.Doc]int, built bool) error {
	count, nodes := map[paper.Doc]int{}, 0
	var walk func(n paper.NodeID) error
	walk = func(n paper.NodeID) error {
		nodes++
		for _, d := range t.Docs(n) {
			count[d]++
		}
		if t.At(t.Path(n)) != n {
			return fmt.Errorf("path %v leads to another node", t.Path(n))
		}
		if t.Leaf(n) && len(t.Children(n)) > 0 {
			return fmt.Errorf("leaf %v has children", t.Path(n))
		}
		if n != t.Root() && !t.Leaf(n) && len(t.Children(n)) == 0 {
			return fmt.Errorf("inner node %v has no children", t.Path(n))
		}
		for _, k := range t.Children(n) {
			if d := t.Docs(n); built && commonPrefix(d, t.Docs(k)) < len(d) {
				return fmt.Errorf("%v %v is no prefix of %v", t.Path(n), d, t.Docs(k))
			}
			if err := walk(k); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(t.Root()); err != nil {
		return err
	}
	if nodes != t.Len() {
		return fmt.Errorf("%d nodes, Len %d", nodes, t.Len())
	}
	for d, n := range count {
		if held[d] != n {
			return fmt.Errorf("doc %d is in %d nodes, held %d times", d, n, held[d])
		}
	}
	for d, n := range held {
		if count[d] != n {
			return fmt.Errorf("doc %d is held %d times, in %d nodes", d, n, count[d])
		}
	}
	return nil
}

// isEmpty checks that all was removed.
func isEmpty(t *rapid.T, x *paper.Tree, held map[paper.Doc]int) {
	t.Helper()
	for d, n := range held {
		if n != 0 {
			t.Fatalf("doc %d is held %d times by an empty index", d, n)
		}
	}
	if x.Len() != 1 {
		t.Fatalf("%d nodes are left", x.Len())
	}
}

func holding(held map[paper.Doc]int) func([]paper.Doc, int) {
	return func(ds []paper.Doc, delta int) {
		for _, d := range ds {
			held[d] += delta
		}
	}
}

// A live index: every search finds what looking at all children finds, wide nodes or not, and what comes goes again.
func TestSearchAgainstNaive(t *testing.T) {
	widest := 0
	rapid.Check(t, func(t *rapid.T) {
		held := map[paper.Doc]int{}
		alpha := rapid.SampledFrom([]float64{0, paper.DefaultAlpha, 0.1}).Draw(t, "alpha")
		x := paper.NewTree(paper.Options{Alpha: alpha, Hold: holding(held)})
		next := contexts(t)
		var leaves []paper.NodeID
		if rapid.Bool().Draw(t, "offline first") {
			b, err := x.Build(context.Background(), []docs{next(), next(), next(), next(), next()})
			if err != nil {
				t.Fatal(err)
			}
			leaves = append(leaves, b.Leaves...)
		}
		for range rapid.SampledFrom([]int{0, 5, 150}).Draw(t, "contexts") {
			c := next()
			got, want := x.Search(c), search(x, c, alpha)
			if got != want {
				t.Fatalf("search of %v: got %+v %v, want %+v %v", c, got, name(x, got), want, name(x, want))
			}
			order := x.Order(nil, c, got)
			if !permuted(order, c) {
				t.Fatalf("order %v of %v", order, c)
			}
			leaves = append(leaves, x.Insert(order, got))
			if i := rapid.IntRange(0, 4*len(leaves)).Draw(t, "remove"); i < len(leaves) {
				x.Remove(leaves[i])
				leaves = slices.Delete(leaves, i, i+1)
			}
			widest = max(widest, len(x.Children(x.Root())))
		}
		if err := checkTree(x, held, false); err != nil {
			t.Fatal(err)
		}
		for _, l := range rapid.Permutation(leaves).Draw(t, "removal order") {
			x.Remove(l)
		}
		isEmpty(t, x, held)
	})
	if widest < 30 && !testing.Short() { // which tries fewer
		t.Errorf("the widest node has %d children: posting lists are not tested", widest)
	}
}

func name(t *paper.Tree, m paper.Match) any {
	if m.Node == paper.None {
		return "nothing"
	}
	return t.Path(m.Node)
}

func permuted(a, b docs) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// A prefix that everybody shares: however many contexts stand behind it, all are its children (§4.2: "all have
// equal distance, so the search stops").
func TestPopularPrefixStaysFlat(t *testing.T) {
	x := paper.NewTree(paper.Options{Alpha: paper.DefaultAlpha})
	for i := range 200 {
		c := docs{1, 2, paper.Doc(10 + i)}
		m := x.Search(c)
		equal(t, "match", search(x, c, paper.DefaultAlpha), m)
		leaf := x.Insert(x.Order(nil, c, m), m)
		if depth := len(x.Path(leaf)); depth > 2 {
			t.Fatalf("context %d has the path %v", i, x.Path(leaf))
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 500 { // contexts of all kinds meet the wide node
		c := docs{1, 2}[r.IntN(3):]
		for range 1 + r.IntN(4) {
			c = append(c, paper.Doc(10+r.IntN(220)))
		}
		c = distinct(c)
		r.Shuffle(len(c), func(i, j int) { c[i], c[j] = c[j], c[i] })
		m := x.Search(c)
		equal(t, "match", search(x, c, paper.DefaultAlpha), m)
		x.Insert(x.Order(nil, c, m), m)
	}
}

func distinct(c docs) docs {
	slices.Sort(c)
	return slices.Compact(c)
}

func commonPrefix(a, b docs) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
