package recorded

import "github.com/ragpilot/ragpilot/internal/cluster"

// Numbers gives the docs of an index their numbers. A number is free again when no node and no request under way needs
// it, so the table is as large as the index. Not safe for concurrent use. The zero Numbers is empty.
type Numbers[K comparable] struct {
	numbers map[K]cluster.Doc
	entries []numbered[K] // by number
	free    []cluster.Doc
	next    int64
}

type numbered[K comparable] struct {
	key  K
	uses int
	seen int64
}

// Take returns the number of a doc, and the place in the order in which docs were first seen. It counts one more use,
// until Drop.
func (t *Numbers[K]) Take(key K) (n cluster.Doc, seen int64) {
	n, ok := t.numbers[key]
	if !ok {
		if t.numbers == nil {
			t.numbers = map[K]cluster.Doc{}
		}
		if k := len(t.free); k > 0 {
			n = t.free[k-1]
			t.free = t.free[:k-1]
		} else {
			n = cluster.Doc(len(t.entries))
			t.entries = append(t.entries, numbered[K]{})
		}
		t.next++
		t.numbers[key] = n
		t.entries[n] = numbered[K]{key: key, seen: t.next}
	}
	t.entries[n].uses++
	return n, t.entries[n].seen
}

// Drop ends one use.
func (t *Numbers[K]) Drop(n cluster.Doc) {
	e := &t.entries[n]
	if e.uses--; e.uses == 0 {
		delete(t.numbers, e.key)
		t.free = append(t.free, n)
	}
}

// Hold is for cluster.Options.Hold.
func (t *Numbers[K]) Hold(docs []cluster.Doc, delta int) {
	for _, n := range docs {
		if delta > 0 {
			t.entries[n].uses++
		} else {
			t.Drop(n)
		}
	}
}

// Len returns the number of docs that have a number.
func (t *Numbers[K]) Len() int { return len(t.numbers) }

// Max returns how many numbers were ever in use at a time.
func (t *Numbers[K]) Max() int { return len(t.entries) }
