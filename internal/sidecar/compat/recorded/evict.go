package recorded

import "github.com/ragpilot/ragpilot/internal/paper"

// Removed is what became of a request that was to go. Node is the number of the leaf that went with it, -1 if there
// was none or other requests stay on it.
type Removed struct {
	Known, Held bool // whether the ID was known, and had a context in the tree
	Node        int
}

// Track remembers an ID that has no context, so that its eviction is known; a known one counts as used just now.
func (x *Index) Track(id string) {
	r, known := x.requests.Peek(id)
	if !known {
		r = &request{leaf: paper.None}
	}
	x.requests.Put(id, r)
	if r.leaf == paper.None {
		x.bare.Put(id, struct{}{})
	}
	if !known {
		x.trim(noLock{})
	}
}

// Remove forgets a request; its leaf goes if it was the last one there, and inner nodes without children go with it.
func (x *Index) Remove(id string) Removed {
	r, ok := x.requests.Peek(id)
	if !ok {
		return Removed{Node: -1}
	}
	x.requests.Delete(id)
	return x.removed(id, r)
}

// removed removes what is left of a request that was forgotten.
func (x *Index) removed(id string, r *request) Removed {
	out := Removed{Known: true, Node: -1}
	if r.leaf == paper.None {
		x.bare.Delete(id)
		return out
	}
	out.Held = true
	x.cuts++
	x.stats.Removals++
	x.tree.RemoveEach(r.leaf, func(n paper.NodeID) {
		if n == r.leaf {
			out.Node = x.nodes[n].number
		}
		x.stats.Tokens -= x.nodes[n].extra
		x.nodes[n] = node{}
	})
	return out
}

// DropOldest removes the oldest request, and reports whether there was one.
func (x *Index) DropOldest() bool {
	id, r, ok := x.requests.DropOldest()
	if ok {
		x.removed(id, r)
	}
	return ok
}

// trim lets the oldest requests leave until the bound is kept.
func (x *Index) trim(lock Lock) {
	if x.limit == 0 {
		return
	}
	for x.bare.Len() > (x.limit+1)/2 {
		id, _, _ := x.bare.DropOldest()
		x.requests.Delete(id)
	}
	for x.requests.Len() > x.limit || x.requests.Weight() > docsPerTurn*x.limit && x.requests.Len() > 1 {
		x.DropOldest()
		lock.Pause()
	}
}
