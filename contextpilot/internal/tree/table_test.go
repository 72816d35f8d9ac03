package tree

import (
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// What a live request costs is the sum of these.
func TestSizes(t *testing.T) {
	for what, c := range map[string]struct{ got, want uintptr }{
		"node":    {unsafe.Sizeof(node{}), 32},
		"request": {unsafe.Sizeof(request{}), 56},
		"slot":    {unsafe.Sizeof(slot{}), 8},
	} {
		if c.got != c.want {
			t.Errorf("a %s takes %d bytes, want %d", what, c.got, c.want)
		}
	}
}

// Hashes that fall on few slots and on both ends of the table make runs that overlap and go round.
func TestTableAgainstMap(t *testing.T) {
	hashes := []uint32{0, 0, 1, 1 << 29, 1 << 30, 1<<31 + 1, 1<<32 - 2, 1<<32 - 1}
	rapid.Check(t, func(t *rapid.T) {
		var x table
		model := map[int32]uint32{}
		number := rapid.Int32Range(1, 40)
		t.Repeat(map[string]func(*rapid.T){
			"add or remove": func(t *rapid.T) {
				at := number.Draw(t, "number")
				h, ok := model[at]
				if ok {
					x.remove(h, at)
					delete(model, at)
					return
				}
				h = rapid.SampledFrom(hashes).Draw(t, "hash")
				x.add(h, at)
				model[at] = h
			},
			"": func(t *rapid.T) {
				found := map[int32]bool{}
				for _, h := range hashes[1:] {
					for at, i := x.first(h); at != 0; at, i = x.next(h, i) {
						if found[at] || model[at] != h {
							t.Fatalf("%d at hash %x (again: %v), in %v", at, h, found[at], model)
						}
						found[at] = true
					}
				}
				if len(found) != len(model) || x.n != len(model) {
					t.Fatalf("found %d of %d, counted %d", len(found), len(model), x.n)
				}
			},
		})
	})
}
