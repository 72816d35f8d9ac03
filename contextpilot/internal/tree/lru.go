package tree

// recency is a node's place in the order of last use, kept only with a capacity. The order is a ring: the root stands
// between the newest, which is older than it, and the oldest. A parent is never older than its child, so the oldest
// node is always a leaf.
type recency struct{ newer, older int32 }

// touch makes n and all above it the most recently used, the ones nearer to the root last.
func (t *Tree) touch(n Node) {
	if t.capacity == 0 {
		return
	}
	for ; n != Root; n = t.node(n).parent {
		c := int32(n)
		t.lru.reach(c)
		t.unlink(c)
		ring := t.lru.at(0)
		*t.lru.at(c) = recency{older: ring.older}
		t.lru.at(ring.older).newer = c
		ring.older = c
	}
}

// unlink takes a node out of the order; harmless if it is not in it.
func (t *Tree) unlink(c int32) {
	if t.capacity == 0 {
		return
	}
	x := t.lru.at(c)
	if t.lru.at(x.newer).older != c {
		return
	}
	t.lru.at(x.newer).older, t.lru.at(x.older).newer = x.older, x.newer
	*x = recency{}
}

func (t *Tree) fit() {
	for t.capacity > 0 && t.tokens > t.capacity && t.count > 0 {
		t.dropLeaf(Node(t.lru.at(0).newer))
	}
}

// dropLeaf removes a node without children; requests that end at it end at its parent from now on, or are
// forgotten if that is the root.
func (t *Tree) dropLeaf(n Node) {
	parent := t.node(n).parent
	for r := -*t.ends(n); r != 0; r = -*t.ends(n) {
		if !t.end(r, parent) {
			t.dropped++
		}
	}
	t.cut(n)
}
