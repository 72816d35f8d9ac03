package tree_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot/internal/tree"
)

// What comes and goes leaves no trace.
func TestInsertRemove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := tree.New(rapid.SampledFrom([]int{0, 100_000}).Draw(t, "capacity"), 0, nil)
		for i := range rapid.IntRange(0, 30).Draw(t, "n") {
			x.Insert(fmt.Sprint("r", i), drawPath(t))
		}
		before, nodes, tokens := image(x), x.Nodes(), x.Tokens()
		x.Insert("guest", drawPath(t))
		if !x.Remove("guest") {
			t.Fatal("the guest is unknown")
		}
		if diff := cmp.Diff(before, image(x)); diff != "" || x.Nodes() != nodes || x.Tokens() != tokens || x.Check() != nil {
			t.Fatalf("after (%v):\n%s", x.Check(), diff)
		}
	})
}

// The children of a node that has many are found by table.
func TestWideNode(t *testing.T) {
	x := tree.New(0, 0, nil)
	path := func(i int) []tree.Elem { return []tree.Elem{{Key: 7, Tokens: 1}, {Key: uint64(i), Tokens: 2}} }
	for i := range 40 {
		x.Insert(fmt.Sprint(i), path(i))
	}
	for i := 0; i < 40; i += 3 {
		x.Remove(fmt.Sprint(i))
	}
	for round := range 2 {
		for i := range 40 {
			want := 2
			if i%3 == 0 && round == 0 {
				want = 1
			}
			if _, steps, _ := x.Walk(path(i)); steps != want {
				t.Errorf("round %d: %d steps of path %d, want %d", round, steps, i, want)
			}
			x.Insert(fmt.Sprint(i), path(i))
			if err := x.Check(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Children come in the order of their arrival, newest first, however many there are and were.
func TestChildrenOrder(t *testing.T) {
	x := tree.New(0, 0, nil)
	path := func(k uint64) []tree.Elem { return []tree.Elem{{Key: 7, Tokens: 1}, {Key: k, Tokens: 2}} }
	want := []uint64{}
	same := func(what string) {
		t.Helper()
		n, _ := x.Child(tree.Root, 7)
		got := []uint64{}
		for _, c := range x.Children(nil, n) {
			got = append(got, x.Key(c))
		}
		if diff := cmp.Diff(want, got); diff != "" || x.Fanout(n) != len(want) {
			t.Fatalf("%s: fanout %d (-want +got):\n%s", what, x.Fanout(n), diff)
		}
	}
	x.Insert("stays", path(0)[:1])
	for round := range uint64(3) {
		for k := range uint64(20) {
			x.Insert(fmt.Sprint(k), path(100*round+k))
			want = slices.Insert(want, 0, 100*round+k)
			same("insert")
		}
		for i := range uint64(20) {
			k := i * 7 % 20
			x.Remove(fmt.Sprint(k))
			want = slices.DeleteFunc(want, func(x uint64) bool { return x == 100*round+k })
			same("remove")
		}
	}
}

// An index of several pages, emptied in another order than it was filled, and filled again.
func TestManyNodes(t *testing.T) {
	const n = 1_000
	for _, capacity := range []int{0, 1 << 30} {
		x := tree.New(capacity, 0, nil)
		ps := paths(n, 5)
		for range 2 {
			for i, p := range ps {
				x.Insert(fmt.Sprint(i), p)
			}
			if err := x.Check(); err != nil {
				t.Fatal(err)
			}
			for i, p := range ps {
				if _, steps, _ := x.Walk(p); steps != len(p) {
					t.Fatalf("%d steps of path %d, want %d", steps, i, len(p))
				}
			}
			for i := range n {
				if !x.Remove(fmt.Sprint(i * 7 % n)) {
					t.Fatalf("request %d is unknown", i*7%n)
				}
			}
			if err := x.Check(); err != nil || x.Nodes() != 0 || x.Tokens() != 0 || x.Len() != 0 {
				t.Fatalf("%d nodes, %d tokens, %d requests: %v", x.Nodes(), x.Tokens(), x.Len(), err)
			}
		}
	}
}
