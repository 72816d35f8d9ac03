package recorded

import "github.com/ragpilot/ragpilot/internal/paper"

// Maps and slices keep the memory of the most that they have held. So a table is copied when it holds less than three quarters
// of its peak, as in package lru.

// leastPeak is the number of entries from which a table is copied.
const leastPeak = 64

// sparse reports whether a table should be copied.
func sparse(now, peak int) bool { return peak > leastPeak && now < peak-peak/4 }

// counted is how many entries a table weighs: those that it holds, or most of its peak while it cannot be copied.
func counted(now, peak int) int { return max(now, peak-peak/4) }

// Shrink gives back the memory of what an index and the numbers of its docs held earlier, if that is much. Requests under way
// keep the numbers that they have taken. It is for who holds the lock, and takes time by the size of the index.
func Shrink[K comparable](x *Index, t *Numbers[K]) {
	if x.commits > 0 || !x.sparse() && !t.sparse() {
		return
	}
	names := t.compact()
	x.compact(func(n paper.Doc) paper.Doc { return names[n] })
}

func (x *Index) sparse() bool {
	return sparse(x.tree.Len(), x.tree.Slots()) || sparse(x.requests.Weight(), x.peak)
}

// compact moves the tree's nodes together, and gives docs their new numbers. Paths, orders and the nodes' numbers for callers stay.
func (x *Index) compact(name func(paper.Doc) paper.Doc) {
	moved := x.tree.Compact(name)
	nodes := make([]node, x.tree.Len())
	for from, to := range moved {
		if to != paper.None && from < len(x.nodes) {
			nodes[to] = x.nodes[from]
		}
	}
	x.nodes, x.peak = nodes, x.requests.Weight()
	for _, r := range x.requests.All() {
		if r.leaf != paper.None {
			r.leaf = moved[r.leaf]
		}
	}
}

func (t *Numbers[K]) sparse() bool { return t.stuck == 0 && sparse(len(t.numbers), len(t.entries)) }

// compact gives the docs the lowest numbers and returns the new number of each old one. A number that a request under way has
// taken stays; sparse waits for those that are in the way.
func (t *Numbers[K]) compact() []paper.Doc {
	names := make([]paper.Doc, len(t.entries))
	for n := range names {
		names[n] = paper.Doc(n)
	}
	size, gap := len(t.numbers), 0
	t.low, t.stuck = paper.Doc(size), 0
	for n := len(t.numbers); n < len(t.entries); n++ {
		e := &t.entries[n]
		switch {
		case e.uses == 0:
		case e.taken > 0:
			size = n + 1
			t.stuck++
		default:
			for t.entries[gap].uses > 0 { // there are as many gaps below as docs above
				gap++
			}
			t.entries[gap], names[n] = *e, paper.Doc(gap)
			*e = numbered[K]{}
		}
	}
	t.high = paper.Doc(size)
	t.entries = append(make([]numbered[K], 0, size), t.entries[:size]...)
	numbers := make(map[K]paper.Doc, len(t.numbers))
	for key, n := range t.numbers {
		numbers[key] = names[n]
	}
	t.numbers, t.free = numbers, nil
	for n := size - 1; n >= 0; n-- { // the lowest is taken first
		if t.entries[n].uses == 0 {
			t.free = append(t.free, paper.Doc(n))
		}
	}
	return names
}
