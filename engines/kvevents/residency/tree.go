package residency

import "github.com/ragpilot/ragpilot/engines/kvevents"

// ref is the number of a node; 0 is none.
type ref uint32

const root ref = 1

// node is a block of some prompt: 72 bytes, without pointers, so that the garbage collector passes over it.
type node struct {
	chain  chain
	hash   kvevents.Hash // the engine's name for it, once it was stored
	parent ref
	kids   ref // the first; a ring would save nothing
	next   ref // sibling
	prev   ref
	list   slot // requests: while the block or one before it is missing, those that miss it first, else those that end here
	depth  int32
	copies int32 // in the memory of the GPU
	low    int32 // in lower tiers
	ends   int32 // requests whose last block it is
	flags  uint32
}

const (
	touched uint32 = 1 << iota // in index.touched: it gained or lost its last copy in this batch
	was                        // it had a copy before
	visited                    // by this settling
)

func (n *node) resident() bool { return n.copies > 0 }

// stored reports whether the engine has the block somewhere.
func (n *node) stored() bool { return n.copies != 0 || n.low != 0 }

// before reports whether the node had a copy at the beginning of the batch.
func (n *node) before() bool {
	if n.flags&touched != 0 {
		return n.flags&was != 0
	}
	return n.resident()
}

// tree holds the nodes.
type tree struct {
	nodes  []node // [0] is unused, [1] the root
	free   ref
	live   int // without the root
	stored int // of these, those that the engine has; the others only requests wait for
	known  map[chain]ref
}

func newTree() tree {
	t := tree{known: make(map[chain]ref)}
	t.reset()
	return t
}

func (t *tree) reset() {
	clear(t.known)
	t.nodes = append(t.nodes[:0], node{}, node{copies: 1})
	t.free, t.live, t.stored = 0, 0, 0
}

func (t *tree) at(r ref) *node { return &t.nodes[r] }

// child returns the node with this chain, which stands behind parent, and makes it if need be.
func (t *tree) child(parent ref, c chain) ref {
	if r, ok := t.known[c]; ok {
		return r
	}
	r := t.free
	if r != 0 {
		t.free = t.nodes[r].next
	} else {
		r = ref(len(t.nodes))
		t.nodes = append(t.nodes, node{})
	}
	p := t.at(parent)
	t.nodes[r] = node{chain: c, parent: parent, next: p.kids, depth: p.depth + 1}
	if p.kids != 0 {
		t.at(p.kids).prev = r
	}
	p.kids = r
	t.known[c] = r
	t.live++
	return r
}

// unlink takes a leaf out.
func (t *tree) unlink(r ref) {
	n := t.at(r)
	if n.prev != 0 {
		t.at(n.prev).next = n.next
	} else {
		t.at(n.parent).kids = n.next
	}
	if n.next != 0 {
		t.at(n.next).prev = n.prev
	}
	delete(t.known, n.chain)
	*n = node{next: t.free}
	t.free = r
	t.live--
}

// missing returns the first block on the way to r that has no copy, or 0.
func (t *tree) missing(r ref) ref {
	first := ref(0)
	for ; r != root; r = t.nodes[r].parent {
		if !t.nodes[r].resident() {
			first = r
		}
	}
	return first
}

// held reports whether any block on the way to r has a copy.
func (t *tree) held(r ref) bool {
	for ; r != root; r = t.nodes[r].parent {
		if t.nodes[r].resident() {
			return true
		}
	}
	return false
}

// path appends the nodes from the first block to r.
func (t *tree) path(to []ref, r ref) []ref {
	start := len(to)
	for ; r != root; r = t.nodes[r].parent {
		to = append(to, r)
	}
	for i, j := start, len(to)-1; i < j; i, j = i+1, j-1 {
		to[i], to[j] = to[j], to[i]
	}
	return to
}
