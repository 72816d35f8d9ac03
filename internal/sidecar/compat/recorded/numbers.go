package recorded

import "github.com/ragpilot/ragpilot/internal/paper"

// Numbers gives the docs of an index their numbers. A number is free again when no node and no request under way needs
// it, so the table is as large as the index. Not safe for concurrent use. The zero Numbers is empty.
type Numbers[K comparable] struct {
	numbers map[K]paper.Doc
	entries []numbered[K] // by number
	free    []paper.Doc
	next    int64
	taken   int // uses by requests under way

	// After the table was compacted: how many taken numbers from low to below high were in the way.
	stuck     int
	low, high paper.Doc
}

type numbered[K comparable] struct {
	key   K
	uses  int32 // by nodes and requests under way
	taken int32 // by requests under way: the number must not change
	seen  int64
}

// Take returns the number of a doc, and the place in the order in which docs were first seen. It counts one more use,
// until Drop.
func (t *Numbers[K]) Take(key K) (n paper.Doc, seen int64) {
	n, ok := t.numbers[key]
	if !ok {
		if t.numbers == nil {
			t.numbers = map[K]paper.Doc{}
		}
		if k := len(t.free); k > 0 {
			n = t.free[k-1]
			t.free = t.free[:k-1]
		} else {
			n = paper.Doc(len(t.entries))
			t.entries = append(t.entries, numbered[K]{})
		}
		t.next++
		t.numbers[key] = n
		t.entries[n] = numbered[K]{key: key, seen: t.next}
	}
	t.entries[n].uses++
	t.entries[n].taken++
	t.taken++
	return n, t.entries[n].seen
}

// Drop ends one use that began with Take.
func (t *Numbers[K]) Drop(n paper.Doc) {
	t.taken--
	e := &t.entries[n]
	if e.taken--; e.taken == 0 && t.stuck > 0 && n >= t.low && n < t.high {
		t.stuck--
	}
	t.release(n)
}

func (t *Numbers[K]) release(n paper.Doc) {
	e := &t.entries[n]
	if e.uses--; e.uses == 0 {
		delete(t.numbers, e.key)
		t.free = append(t.free, n)
	}
}

// Hold is for paper.Options.Hold.
func (t *Numbers[K]) Hold(docs []paper.Doc, delta int) {
	for _, n := range docs {
		if delta > 0 {
			t.entries[n].uses++
		} else {
			t.release(n)
		}
	}
}

// Taken reports whether a request under way holds a number.
func (t *Numbers[K]) Taken() bool { return t.taken > 0 }

// Weight is about how many bytes the table takes.
func (t *Numbers[K]) Weight() int { return numberBytes * counted(len(t.numbers), len(t.entries)) }

// numberBytes is about what a doc's number takes, in the map and in the list.
const numberBytes = 150

// Len returns the number of docs that have a number.
func (t *Numbers[K]) Len() int { return len(t.numbers) }

// Max returns how many numbers were in use at a time since the table was last compacted.
func (t *Numbers[K]) Max() int { return len(t.entries) }
