package sim

// node is a key that is in the cache. Nodes form a tree in which a request's prompt is a path from the root.
//
// A node is never evicted before those behind it: a request that uses a block also uses one for each key before it, and gives it
// back before those (see pool.unpin), so it is older than they are. An evicted node is thus always a leaf.
type node struct {
	key            key
	oldest, newest int32 // blocks that hold the key; the oldest serves hits
	parent         int32 // the key before it
	depth          int32 // blocks from the start of the prompt, itself included
	leaving        bool  // its last block was taken during the current admission
	ends           *seen // requests whose resident prefix, as reported, ends here
}

// root is the node before every first block. It is always there and holds no block.
const root int32 = 0

// index finds the node of a key. Slots of removed nodes are used again.
type index struct {
	nodes []node
	at    map[key]int32
	spare []int32 // slots to use again
}

func newIndex() index {
	return index{nodes: []node{{oldest: none, newest: none, parent: none}}, at: make(map[key]int32)}
}

// add returns the node of a key, new or not, behind parent.
func (x *index) add(k key, parent int32) int32 {
	n, ok := x.at[k]
	if ok {
		return n
	}
	if last := len(x.spare) - 1; last >= 0 {
		n, x.spare = x.spare[last], x.spare[:last]
	} else {
		n = int32(len(x.nodes))
		x.nodes = append(x.nodes, node{})
	}
	x.nodes[n] = node{key: k, oldest: none, newest: none, parent: parent, depth: x.nodes[parent].depth + 1}
	x.at[k] = n
	return n
}

// remove takes a leaf out.
func (x *index) remove(n int32) {
	delete(x.at, x.nodes[n].key)
	x.spare = append(x.spare, n)
}
