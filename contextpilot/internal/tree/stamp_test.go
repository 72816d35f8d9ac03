package tree

import "testing"

func TestAgeAndTier(t *testing.T) {
	tr := New(0, 0, nil)
	path := func(keys ...uint64) (p []Elem) {
		for _, k := range keys {
			p = append(p, Elem{Key: k, Tokens: 10})
		}
		return p
	}
	node := func(keys ...uint64) Node {
		t.Helper()
		n, steps, _ := tr.Walk(path(keys...))
		if steps != len(keys) {
			t.Fatalf("%v is not in the tree", keys)
		}
		return n
	}
	want := func(what string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	tr.Insert("a", path(1, 2, 3))
	want("age of a new node", tr.Age(node(1, 2, 3)), 0)
	tr.Insert("b", path(1, 4))
	tr.Insert("c", path(5))
	want("age of a shared node", tr.Age(node(1)), 1)
	want("age of a node that only a has", tr.Age(node(1, 2)), 2)
	want("age of the root", tr.Age(Root), 0)

	if tr.Move("nobody", 0, 1) || !tr.Move("a", 10, 2) {
		t.Error("Move: want false for a request that is not live, true for one that is")
	}
	want("tier of what stayed", int(tr.Tier(node(1))), 0)
	want("tier of what was moved", int(tr.Tier(node(1, 2, 3))), 2)
	want("age of what was moved", tr.Age(node(1, 2, 3)), 2)
	tr.Insert("d", path(1, 2))
	want("tier of what was sent again", int(tr.Tier(node(1, 2))), 0)
	want("tier of what was not", int(tr.Tier(node(1, 2, 3))), 2)
	tr.Move("a", 0, 200)
	want("tier beyond the last", int(tr.Tier(node(1, 2, 3))), MaxTier)

	if n, ok := tr.Resend("a"); n != 30 || !ok {
		t.Errorf("Resend: %d tokens, live %v", n, ok)
	}
	want("age of what was sent again as it was", tr.Age(node(1, 2, 3)), 0)
	want("tier of what was sent again as it was", int(tr.Tier(node(1, 2, 3))), 0)
	want("age of what was not", tr.Age(node(1, 4)), 3)
	if n, ok := tr.Resend("nobody"); n != 0 || ok {
		t.Errorf("Resend of a request that is not live: %d tokens, live %v", n, ok)
	}

	tr.Remove("c")
	tr.Insert("e", path(9))
	want("age of a node whose number was used before", tr.Age(node(9)), 0)
	tr.clock = clockMask // the clock begins again
	tr.Insert("f", path(7))
	tr.Insert("g", path(8))
	want("age across the clock's end", tr.Age(node(7)), 1)
}
