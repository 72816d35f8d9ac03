package paper

import (
	"cmp"
	"slices"
)

// NodeID names a node of a [Tree]; the root is returned by [Tree.Root]. IDs of removed nodes are reused.
type NodeID int32

// None is the NodeID of nothing.
const None NodeID = -1

// wide is the number of children from which a node keeps posting lists, so that a search does not look at
// every child.
const wide = 24

// Options configure a [Tree]. The zero value follows the paper with alpha 0; use [DefaultAlpha].
type Options struct {
	Alpha   float64
	Linkage Linkage
	// Less orders the docs of a shared prefix (the "sorted intersection" of §4.1); nil: by number.
	Less func(a, b Doc) bool
	// Hold is called with the docs that a node starts (+1) and ceases (−1) to hold, so that the caller knows when a number
	// is free again; nil: no call.
	Hold func(docs []Doc, delta int)
	// Recorded follows the published implementation where it differs from the paper.
	Recorded bool
}

// MaxAlpha is the largest weight of the position term that requests may ask for: distances stay finite.
const MaxAlpha = 1e6

// DefaultAlpha is the weight of the position term used in all of the paper's experiments (§7).
const DefaultAlpha = 0.001

// Tree is the context index: leaves are contexts, inner nodes the prefix that the leaves below share.
type Tree struct {
	opt   Options
	nodes []node
	free  []NodeID
	root  NodeID
	live  int
	seq   int64
	pos   positions
	hits  []int32 // scratch: child slot → shared docs
	touch []int32 // scratch: slots with hits
}

type node struct {
	docs   []Doc
	kids   []NodeID // ascending by seq, so that a path index is a position in here
	parent NodeID
	seq    int64
	uses   int32 // leaf: contexts that share it
	leaf   bool
	lists  map[Doc][]NodeID // wide nodes: doc → children that hold it, ascending by seq
}

// NewTree returns an index without contexts.
func NewTree(opt Options) *Tree {
	if opt.Hold == nil {
		opt.Hold = func([]Doc, int) {}
	}
	t := &Tree{opt: opt}
	t.root = t.add(nil, None, false)
	return t
}

// Root returns the root.
func (t *Tree) Root() NodeID { return t.root }

// Len returns the number of nodes, the root included.
func (t *Tree) Len() int { return t.live }

// Docs returns the node's docs in prompt order; the slice belongs to the tree.
func (t *Tree) Docs(n NodeID) []Doc { return t.nodes[n].docs }

// Children returns the node's children in path order; the slice belongs to the tree.
func (t *Tree) Children(n NodeID) []NodeID { return t.nodes[n].kids }

// Parent returns the node above n, None for the root.
func (t *Tree) Parent(n NodeID) NodeID { return t.nodes[n].parent }

// Leaf reports whether n stands for contexts rather than for a shared prefix.
func (t *Tree) Leaf(n NodeID) bool { return t.nodes[n].leaf }

// Path returns the child positions that lead from the root to n: ContextPilot's search path.
func (t *Tree) Path(n NodeID) []int {
	path := []int{}
	for n != t.root {
		p := t.nodes[n].parent
		i, _ := t.slot(p, n)
		path = append(path, i)
		n = p
	}
	slices.Reverse(path)
	return path
}

// At returns the node that the child positions lead to from the root; None where they lead nowhere.
func (t *Tree) At(path []int) NodeID {
	n := t.root
	for _, i := range path {
		if i < 0 || i >= len(t.nodes[n].kids) {
			return None
		}
		n = t.nodes[n].kids[i]
	}
	return n
}

func (t *Tree) less(a, b Doc) int {
	if t.opt.Less == nil {
		return cmp.Compare(a, b)
	}
	switch {
	case t.opt.Less(a, b):
		return -1
	case t.opt.Less(b, a):
		return 1
	}
	return 0
}

func (t *Tree) add(docs []Doc, parent NodeID, leaf bool) NodeID {
	n := node{docs: docs, parent: parent, leaf: leaf}
	t.live++
	t.opt.Hold(docs, 1)
	if k := len(t.free); k > 0 {
		id := t.free[k-1]
		t.free = t.free[:k-1]
		t.nodes[id] = n
		return id
	}
	t.nodes = append(t.nodes, n)
	return NodeID(len(t.nodes) - 1)
}

// slot returns the position of child among parent's children.
func (t *Tree) slot(parent, child NodeID) (int, bool) {
	return t.find(t.nodes[parent].kids, t.nodes[child].seq)
}

// find returns where the child numbered seq stands in a list of siblings, or where it belongs.
func (t *Tree) find(list []NodeID, seq int64) (int, bool) {
	return slices.BinarySearchFunc(list, seq, func(k NodeID, seq int64) int { return cmp.Compare(t.nodes[k].seq, seq) })
}

// adopt makes child the last child of parent.
func (t *Tree) adopt(parent, child NodeID) {
	t.seq++
	p := &t.nodes[parent]
	t.nodes[child].parent, t.nodes[child].seq = parent, t.seq
	p.kids = append(p.kids, child)
	if p.lists != nil {
		t.list(parent, child)
		return
	}
	if len(p.kids) > wide {
		p.lists = map[Doc][]NodeID{}
		for _, k := range p.kids {
			t.list(parent, k)
		}
	}
}

// replace puts fresh where old stands among its parent's children; old is left without a parent.
func (t *Tree) replace(old, fresh NodeID) {
	parent := t.nodes[old].parent
	t.unlist(parent, old)
	i, _ := t.slot(parent, old)
	t.nodes[fresh].parent, t.nodes[fresh].seq = parent, t.nodes[old].seq
	t.nodes[parent].kids[i] = fresh
	t.list(parent, fresh)
	t.nodes[old].parent = None
}

// list enters a child in its parent's posting lists, if the parent keeps any.
func (t *Tree) list(parent, child NodeID) {
	lists := t.nodes[parent].lists
	if lists == nil {
		return
	}
	for _, d := range t.nodes[child].docs {
		i, _ := t.find(lists[d], t.nodes[child].seq)
		lists[d] = slices.Insert(lists[d], i, child)
	}
}

func (t *Tree) unlist(parent, child NodeID) {
	lists := t.nodes[parent].lists
	if lists == nil {
		return
	}
	for _, d := range t.nodes[child].docs {
		i, ok := t.find(lists[d], t.nodes[child].seq)
		switch {
		case !ok:
		case len(lists[d]) == 1:
			delete(lists, d)
		default:
			lists[d] = slices.Delete(lists[d], i, i+1)
		}
	}
}

// Remove takes one context away from its leaf. A leaf that no context is left on goes, and with it every inner
// node that is left without children: O(h) nodes.
func (t *Tree) Remove(leaf NodeID) { t.RemoveEach(leaf, func(NodeID) {}) }

// RemoveEach is [Tree.Remove] and calls gone with each node that goes, the leaf first. The ID may be given to a new node afterwards.
func (t *Tree) RemoveEach(leaf NodeID, gone func(NodeID)) {
	n := &t.nodes[leaf]
	if n.uses--; n.uses > 0 {
		return
	}
	for id := leaf; id != t.root && len(t.nodes[id].kids) == 0; {
		parent := t.nodes[id].parent
		gone(id)
		t.removeNode(id)
		id = parent
	}
}

// removeNode takes a node without children out of the tree.
func (t *Tree) removeNode(id NodeID) {
	parent := t.nodes[id].parent
	t.unlist(parent, id)
	i, _ := t.slot(parent, id)
	p := &t.nodes[parent]
	p.kids = slices.Delete(p.kids, i, i+1)
	t.opt.Hold(t.nodes[id].docs, -1)
	t.nodes[id] = node{parent: None}
	t.free = append(t.free, id)
	t.live--
}

// GraftChild moves one child of sub's root, with all below it, to the end of t's root's children and calls moved with where
// each node is now, parents first. The nodes' docs belong to t afterwards.
func (t *Tree) GraftChild(sub *Tree, child NodeID, moved func(from, to NodeID)) {
	var move func(from, parent NodeID)
	move = func(from, parent NodeID) {
		n := sub.nodes[from]
		id := t.add(n.docs, parent, n.leaf)
		t.nodes[id].uses = n.uses
		t.adopt(parent, id)
		moved(from, id)
		for _, k := range n.kids {
			move(k, id)
		}
	}
	move(child, t.root)
}

// Rename gives every doc another number, different ones for different docs. Whoever clusters a batch can number
// its docs densely and enter the tree into a larger numbering afterwards.
func (t *Tree) Rename(name func(Doc) Doc) {
	for i := range t.nodes {
		n := &t.nodes[i]
		if len(n.docs) == 0 {
			continue
		}
		t.opt.Hold(n.docs, -1)
		for j, d := range n.docs {
			n.docs[j] = name(d)
		}
		t.opt.Hold(n.docs, 1)
	}
	t.relist()
}

// SetHold replaces [Options.Hold] and calls the new one with every doc that the nodes hold.
func (t *Tree) SetHold(hold func(docs []Doc, delta int)) {
	t.opt.Hold = hold
	for i := range t.nodes {
		if docs := t.nodes[i].docs; len(docs) > 0 {
			hold(docs, 1)
		}
	}
}
