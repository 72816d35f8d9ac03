package paper

// Slots returns how many nodes the tree has room for: the most that it had since it was made or compacted.
func (t *Tree) Slots() int { return len(t.nodes) }

// Compact moves the nodes together and gives every doc another number, so that the memory of removed nodes and docs is free. It returns
// where each node is now, [None] for those that were removed. The order of children stays. [Options.Hold] is not called: the caller
// has renumbered already.
func (t *Tree) Compact(name func(Doc) Doc) (moved []NodeID) {
	moved = make([]NodeID, len(t.nodes))
	for _, id := range t.free {
		moved[id] = None
	}
	nodes := make([]node, 0, t.live)
	for id := range t.nodes {
		if moved[id] != None {
			moved[id] = NodeID(len(nodes))
			nodes = append(nodes, t.nodes[id])
		}
	}
	for i := range nodes {
		n := &nodes[i]
		if n.parent != None {
			n.parent = moved[n.parent]
		}
		for j, d := range n.docs {
			n.docs[j] = name(d)
		}
		kids := make([]NodeID, len(n.kids))
		for j, k := range n.kids {
			kids[j] = moved[k]
		}
		n.kids = kids
	}
	t.nodes, t.free, t.root = nodes, nil, moved[t.root]
	t.pos, t.hits, t.touch = positions{}, nil, nil
	t.relist()
	return moved
}

// relist makes the posting lists anew.
func (t *Tree) relist() {
	for i := range t.nodes {
		if n := &t.nodes[i]; n.lists != nil {
			n.lists = map[Doc][]NodeID{}
			for _, k := range n.kids {
				t.list(NodeID(i), k)
			}
		}
	}
}
