package tree

// Touch makes n and all above it the most recently used, the ones nearer to the root last.
func (t *Tree) Touch(n Node) {
	if t.capacity == 0 {
		return
	}
	for ; n != Root; n = t.nodes[n].parent {
		t.unlink(n)
		t.nodes[n].next = t.first
		if t.first != none {
			t.nodes[t.first].prev = n
		}
		t.first = n
		if t.last == none {
			t.last = n
		}
	}
}

// unlink takes n out of the LRU list; harmless if it is not in it.
func (t *Tree) unlink(n Node) {
	x := &t.nodes[n]
	if x.prev != none {
		t.nodes[x.prev].next = x.next
	} else if t.first == n {
		t.first = x.next
	}
	if x.next != none {
		t.nodes[x.next].prev = x.prev
	} else if t.last == n {
		t.last = x.prev
	}
	x.prev, x.next = none, none
}

func (t *Tree) fit() {
	for t.capacity > 0 && t.tokens > t.capacity && t.last != none {
		t.dropLeaf(t.last)
	}
}

// dropLeaf removes a node without children; requests that end at it end at its parent from now on, or are
// forgotten if that is the root.
func (t *Tree) dropLeaf(n Node) {
	parent := t.nodes[n].parent
	for r := t.nodes[n].reqs; r != none; r = t.nodes[n].reqs {
		t.detach(r)
		if parent == Root {
			t.forget(r)
			t.dropped++
		} else {
			t.attach(r, parent)
		}
	}
	t.cut(n)
}
