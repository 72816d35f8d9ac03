package tree_test

import (
	"fmt"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot/internal/tree"
)

// path100 is a path of blocks of 100 tokens.
func path100(keys ...uint64) (p []tree.Elem) {
	for _, k := range keys {
		p = append(p, tree.Elem{Key: k, Tokens: 100})
	}
	return p
}

// An engine that lost everything says so with one answer: what hung behind the blocks that were missing is gone.
func TestContradict(t *testing.T) {
	for name, c := range map[string]struct {
		tokens       int
		contradicted bool
		cut          int
		left         map[string]int // resident
	}{
		"all was there":       {200, false, 0, map[string]int{"a": 300, "b": 200, "c": 400, "d": 200, "flying": 400, "later": 400, "late": 400}},
		"the second was lost": {100, true, 2, map[string]int{"a": 200, "b": 200, "c": 200, "d": 200, "flying": 400, "later": 400, "late": 400}},
		"all was lost":        {0, true, 3, map[string]int{"a": 200, "b": 200, "c": 200, "d": 100, "flying": 400, "later": 400, "late": 400}},
	} {
		t.Run(name, func(t *testing.T) {
			x := tree.New(0, 0, nil)
			for id, p := range map[string][]tree.Elem{"a": path100(1, 2, 3), "b": path100(7, 8), "c": path100(1, 2, 4, 5), "d": path100(1, 9)} {
				x.Insert(id, p)
				x.Serve(id)
			}
			x.Insert("flying", path100(1, 2, 4, 6)) // through what c holds
			x.Insert("behind d", path100(1, 9, 12))
			x.Insert("late", path100(1, 2, 3, 7))
			x.Insert("r", path100(1, 2, 10))
			x.Insert("later", path100(1, 2, 4, 7))
			x.Serve("later")
			x.Serve("late")
			if contradicted, cut := x.Contradict("r", c.tokens); contradicted != c.contradicted || cut != c.cut {
				t.Errorf("contradicted: %v, cut %d, want %v, %d", contradicted, cut, c.contradicted, c.cut)
			}
			x.Serve("r")
			c.left["r"] = 300
			for id, want := range c.left {
				if n, ok := x.Resident(id); n != want || !ok {
					t.Errorf("%s: %d tokens resident (%v), want %d", id, n, ok, want)
				}
			}
			if err := x.Check(); err != nil {
				t.Error(err)
			}
			// Block 9 stays for what is in flight behind it. Is it sure?
			x.Insert("probe", path100(1, 9, 12, 13))
			if contradicted, _ := x.Contradict("probe", 100); contradicted != (c.left["d"] == 200) {
				t.Errorf("block 9 is sure: %v", contradicted)
			}
			// What is in flight alone is not sure: the next one through it contradicts nothing behind block 4.
			x.Insert("next", path100(1, 2, 4, 6, 11))
			if contradicted, _ := x.Contradict("next", 300); contradicted {
				t.Error("what only a request in flight had sent was taken for sure")
			}
			if contradicted, _ := x.Contradict("next", 299); !contradicted {
				t.Error("what an answered request had sent was not taken for sure")
			}
		})
	}
}

// Equal requests that are in flight together find nothing, all of them, and contradict nothing.
func TestContradictTogether(t *testing.T) {
	x := tree.New(0, 0, nil)
	for i := range 50 {
		x.Insert(fmt.Sprint(i), path100(1, 2, 3, uint64(100+i)))
	}
	for i := range 50 {
		if contradicted, cut := x.Contradict(fmt.Sprint(i), 0); contradicted || cut != 0 {
			t.Fatalf("request %d: cut %d", i, cut)
		}
		x.Serve(fmt.Sprint(i))
	}
	if x.Nodes() != 53 {
		t.Errorf("%d nodes, want 53", x.Nodes())
	}
}

// The unknown and the served contradict nothing.
func TestContradictLate(t *testing.T) {
	x := tree.New(0, 0, nil)
	x.Insert("a", path100(1, 2))
	x.Serve("a")
	x.Insert("b", path100(1, 2, 3))
	x.Serve("b")
	for _, id := range []string{"b", "unknown"} {
		if contradicted, cut := x.Contradict(id, 0); contradicted || cut != 0 {
			t.Errorf("%s: contradicted, cut %d", id, cut)
		}
	}
}

// BenchmarkServe answers requests behind an index of live ones: most of the path was sure before.
func BenchmarkServe(b *testing.B) {
	sizes(b, func(b *testing.B, live, k int) {
		const guests = 1024
		ps := paths(live+guests, k)
		x := loaded(ps[:live])
		for i := range live {
			x.Serve(fmt.Sprintf("request-%012d", i))
		}
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			b.StopTimer()
			x.Insert("guest", ps[live+i%guests])
			b.StartTimer()
			x.Serve("guest")
			i++
		}
	})
}
