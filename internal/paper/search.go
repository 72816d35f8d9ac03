package paper

import (
	"cmp"
	"slices"
)

// Match is what [Tree.Search] found: the node whose docs come first in the new context, or None.
type Match struct {
	Node   NodeID
	Shared int // docs of the context that the node holds
	// Prefix: the node's first doc is in the context, so that its docs can be shared as a prefix. A
	// match without it only lends its order: the context becomes its sibling.
	Prefix bool
}

// Search descends from the root to the child of least distance that shares a doc with c, as long as a prefix
// can be shared (§4.2, Alg. 1). It stops at a leaf, and where all children are equally far and share no more than
// the node itself: then the node is the longest shared prefix. A tie goes to an inner node before a leaf, so that
// C6 of the paper's example joins C4. Children of wide nodes are found through posting lists; a level costs
// O(matches of c's docs among the children).
func (t *Tree) Search(c []Doc) Match {
	t.pos.load(c)
	none := Match{Node: None}
	at := none
	for cur := t.root; ; {
		best, shared, level := t.nearest(cur, c)
		if best == None || level && shared == at.Shared && !t.opt.Recorded {
			return at
		}
		b := &t.nodes[best]
		_, first := t.pos.find(b.docs[0])
		at = Match{Node: best, Shared: shared, Prefix: first}
		if !first || len(b.kids) == 0 {
			return at
		}
		cur = best
	}
}

// nearest returns the child of n with least distance to the loaded context c among those that share a doc;
// level: all of two or more children are equally far.
func (t *Tree) nearest(n NodeID, c []Doc) (best NodeID, shared int, level bool) {
	p := &t.nodes[n]
	best = None
	var bd float64
	same, tried := true, 0
	try := func(k NodeID) {
		tried++
		d, s := t.pos.distance(t.nodes[k].docs, len(c), t.opt.Alpha)
		if s == 0 {
			same = false
			return
		}
		if t.opt.Recorded {
			d = float64(float32(d)) // the published implementation compares single-precision distances
		}
		switch {
		case best == None:
			best, bd, shared = k, d, s
		case d < bd:
			same = false
			best, bd, shared = k, d, s
		case d > bd:
			same = false
		case t.prefer(k, best):
			best, shared = k, s
		}
	}
	if p.lists == nil {
		for _, k := range p.kids {
			try(k)
		}
	} else {
		t.candidates(n, c, try)
	}
	// A child that was not tried shares nothing, or is further.
	return best, shared, same && tried == len(p.kids) && tried > 1
}

// prefer breaks a tie of two equally distant children.
func (t *Tree) prefer(k, best NodeID) bool {
	if !t.opt.Recorded && t.nodes[k].leaf != t.nodes[best].leaf {
		return t.nodes[best].leaf
	}
	return t.nodes[k].seq < t.nodes[best].seq
}

// candidates gives try every child of the wide node n that can be nearest to c. It counts shared docs through
// the posting lists, then leaves out children whose overlap alone puts them behind the best by more than the
// position term of Eq. 1 can make up for.
func (t *Tree) candidates(n NodeID, c []Doc, try func(NodeID)) {
	p := &t.nodes[n]
	if len(t.hits) < len(t.nodes) {
		t.hits = make([]int32, len(t.nodes)+len(t.nodes)/2)
	}
	t.touch = t.touch[:0]
	for i, d := range c {
		if last, _ := t.pos.find(d); int(last) != i { // it stands in c again behind i
			continue
		}
		for _, k := range p.lists[d] {
			if t.hits[k] == 0 {
				t.touch = append(t.touch, int32(k))
			}
			t.hits[k]++
		}
	}
	least, longest := 1.0, len(c)
	for _, k := range t.touch {
		m := max(len(c), len(t.nodes[k].docs))
		longest = max(longest, m)
		least = min(least, 1-float64(t.hits[k])/float64(m))
	}
	bound := least + t.opt.Alpha*float64(longest)
	for _, k := range t.touch {
		h := t.hits[k]
		t.hits[k] = 0
		if 1-float64(h)/float64(max(len(c), len(t.nodes[k].docs))) <= bound {
			try(NodeID(k))
		}
	}
}

// Order is Alg. 2: the docs of c that the matched node holds, in the node's order, then the rest of c in its own
// order. The result is appended to dst and is a permutation of c; a doc that stands in c twice is kept.
func (t *Tree) Order(dst, c []Doc, m Match) []Doc {
	if m.Node == None {
		return append(dst, c...)
	}
	start := len(dst)
	t.pos.load(c)
	for _, d := range t.nodes[m.Node].docs {
		if _, ok := t.pos.find(d); ok {
			dst = append(dst, d)
		}
	}
	t.pos.begin()
	for _, d := range dst[start:] {
		t.pos.put(d)
	}
	for _, d := range c {
		if !t.pos.has(d) {
			dst = append(dst, d)
		}
		t.pos.take(d) // once more in c it is no longer at the front
	}
	return dst
}

// Insert adds the ordered context c at the match that Search gave for it and returns its leaf. At an inner node
// it becomes a child; at a leaf a new inner node takes the leaf's place, with the prefix both share; without a
// shared prefix it becomes a sibling; without a match a child of the root.
func (t *Tree) Insert(c []Doc, m Match) NodeID {
	parent := t.root
	switch {
	case m.Node == None:
	case !m.Prefix:
		parent = t.nodes[m.Node].parent
	case !t.nodes[m.Node].leaf:
		parent = m.Node
	default:
		common := commonPrefix(t.nodes[m.Node].docs, c)
		switch {
		case common == len(c) && common == len(t.nodes[m.Node].docs) && !t.opt.Recorded:
			t.nodes[m.Node].uses++ // the same prompt again (Alg. 4, line 8)
			return m.Node
		case common == 0 || (common == len(c) && common == len(t.nodes[m.Node].docs)):
			parent = t.nodes[m.Node].parent
		default:
			parent = t.split(m.Node, common)
		}
	}
	leaf := t.add(slices.Clone(c), parent, true)
	t.nodes[leaf].uses = 1
	t.adopt(parent, leaf)
	return leaf
}

// split puts a new inner node with the leaf's first n docs between the leaf and its parent.
func (t *Tree) split(leaf NodeID, n int) NodeID {
	inner := t.add(slices.Clone(t.nodes[leaf].docs[:n]), None, false)
	t.replace(leaf, inner)
	t.adopt(inner, leaf)
	return inner
}

func commonPrefix(a, b []Doc) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// byLess sorts docs by the tree's order of a shared prefix.
func (t *Tree) byLess(docs []Doc) {
	slices.SortFunc(docs, func(a, b Doc) int { return cmp.Or(t.less(a, b), cmp.Compare(a, b)) })
}
