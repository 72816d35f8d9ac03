//go:build !invariants

package tree_test

import "testing"

// An index that has reached its size takes no more memory.
func TestAllocs(t *testing.T) {
	const live, guests = 1_000, 100
	ps := paths(live+guests, 15)
	x := loaded(ps[:live])
	i := 0
	visit := func() {
		x.Insert("guest", ps[live+i%guests])
		x.Serve("guest")
		x.Extend("guest", 10)
		x.Remove("guest")
		i++
	}
	for range guests {
		visit()
	}
	if n := testing.AllocsPerRun(guests, visit); n != 0 {
		t.Errorf("%v allocations per request, want 0", n)
	}
}
