package index

import (
	"bytes"
	"slices"
	"testing"
)

// Of a memory that was removed or replaced no row, stem or name stays, and what others have stays as it was.
func TestRemoveErases(t *testing.T) {
	x := New()
	for i, id := range []string{"kept", "gone", "replaced", "last"} {
		vector := make([]float32, 40)
		vector[i] = 1
		x.Put(&Entry{ID: id, Text: "tea " + id + " green", Entities: []string{"all", id}, Vector: vector})
	}
	size := x.vectors.rowBytes()
	rows := slices.Collect(slices.Chunk(bytes.Clone(x.vectors.chunks[0]), size))
	stems, phrases, links := slices.Clone(x.stems), slices.Clone(x.phrases), slices.Clone(x.links)

	x.Remove("gone")
	x.Put(&Entry{ID: "replaced", Text: "coffee"})

	for i, gone := range []bool{false, true, true, false} {
		if row := x.vectors.chunks[0][i*size:][:size]; gone && bytes.ContainsFunc(row, func(r rune) bool { return r != 0 }) || !gone &&
			!bytes.Equal(row, rows[i]) {
			t.Errorf("row %d: %v, was %v", i, row, rows[i])
		}
		had := stems[3*i:][:3] // three stems, a phrase and two names each
		if now := x.stems[3*i:][:3]; gone && !slices.Equal(now, []stem{0, 0, 0}) || !gone && !slices.Equal(now, had) {
			t.Errorf("stems %d: %v, were %v", i, now, had)
		}
		if now := x.phrases[i]; gone != (now == 0) || !gone && now != phrases[i] {
			t.Errorf("phrase %d: %d, was %d", i, now, phrases[i])
		}
		if now := x.links[2*i:][:2]; gone && !slices.Equal(now, []int32{0, 0}) || !gone && !slices.Equal(now, links[2*i:][:2]) {
			t.Errorf("names %d: %v, were %v", i, now, links[2*i:][:2])
		}
	}
	for _, n := range x.vectors.scratch {
		if n != 0 {
			t.Fatalf("numbers of the last vector stay: %v", x.vectors.scratch)
		}
	}
}
