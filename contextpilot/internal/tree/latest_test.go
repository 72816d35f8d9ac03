package tree

import (
	"slices"
	"testing"
)

func TestLatest(t *testing.T) {
	x := New(0, 0, nil)
	for id := range x.Latest() {
		t.Errorf("of an empty tree: %q", id)
	}
	keys := func() (out [][]uint64) {
		for id, n := range x.Latest() {
			path := []uint64{uint64(id[0])}
			for ; n != Root; n = x.Parent(n) {
				path = append(path, x.Key(n))
			}
			out = append(out, path)
		}
		return out
	}
	x.Insert("a", []Elem{{1, 10}, {2, 10}})
	x.Insert("b", []Elem{{1, 10}, {3, 10}})
	x.Insert("c", []Elem{{1, 10}})
	x.Remove("b")
	x.Insert("a", []Elem{{4, 10}}) // comes anew
	want := [][]uint64{{'a', 4}, {'c', 1}}
	if got := keys(); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("IDs and paths from their ends %v, want %v", got, want)
	}
	for range x.Latest() {
		break
	}
}

func TestRemoveOldest(t *testing.T) {
	var gone []string
	x := New(0, 0, func(id string) { gone = append(gone, id) })
	for _, id := range []string{"a", "b", "c"} {
		x.Insert(id, []Elem{{1, 10}, {uint64(id[0]), 10}})
	}
	x.Remove("b")
	for want := 1; x.RemoveOldest(); want-- {
		if x.Len() != want {
			t.Errorf("%d requests, want %d", x.Len(), want)
		}
	}
	if !slices.Equal(gone, []string{"b", "a", "c"}) || x.Tokens() != 0 {
		t.Errorf("%v have left, %d tokens are there", gone, x.Tokens())
	}
}
