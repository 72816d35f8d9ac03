package offline

import "slices"

// forest is the trie of all prompts as far as requests share: a node stands for the blocks that its requests have in
// common beyond its parent's, its segment. The order of the blocks in a segment is left open. The cost of a forest is
// the weight of all segments.
//
// Node 0 is the root, with an empty segment. The leaves follow, one for each distinct set; all others come and go.
type forest struct {
	weight []int64 // by block
	nodes  []node
	wide   []bool // nodes whose children are in the index; a node stays wide until it is freed
	index  kidIndex
	free   []int32
	cost   int64 // of all nodes; a detached one counts with its whole set
	steps  int   // work done: nodes and blocks looked at

	stamp []uint32 // by block: == cur if it is in the set at hand
	cur   uint32
	seen  []uint32 // by node: == cur if it was visited
	at    finder

	log   journal
	path  []int32 // scratch
	carry []int32 // scratch
	in    []int32 // scratch
}

type node struct {
	seg  []int32 // a detached node holds its whole set here
	w    int64   // weight of seg
	up   int32   // parent; none: detached or free
	kid  int32   // first child
	next int32   // sibling
	prev int32
	kids int32
}

const (
	none = int32(-1)
	root = int32(0)
	// wideKids is the number of children from which they are found by block instead of by looking at each.
	wideKids = 24
)

func newForest(weight []int64, leaves int) *forest {
	f := &forest{weight: weight, stamp: make([]uint32, len(weight))}
	f.nodes = make([]node, 0, 2*leaves+8)
	for range leaves + 1 {
		f.push()
	}
	f.wide[root] = true
	return f
}

func (f *forest) push() int32 {
	f.nodes = append(f.nodes, node{up: none, kid: none, next: none, prev: none})
	f.wide = append(f.wide, false)
	f.seen = append(f.seen, 0)
	f.log.mark = append(f.log.mark, 0)
	return int32(len(f.nodes) - 1)
}

func (f *forest) alloc() int32 {
	n := len(f.free)
	if n == 0 {
		v := f.push()
		f.free = append(f.free, v) // so that undo gives it back
		n = 1
	}
	v := f.free[n-1]
	f.free = f.free[:n-1]
	f.save(v)
	f.log.taken = append(f.log.taken, v)
	f.wide[v] = false
	return v
}

// release frees a node without parent and children.
func (f *forest) release(v int32) {
	f.setSeg(v, nil)
	if f.log.on {
		f.log.freed = append(f.log.freed, v)
		return
	}
	f.free = append(f.free, v)
}

func (f *forest) weigh(set []int32) int64 {
	w := int64(0)
	for _, d := range set {
		w += f.weight[d]
	}
	return w
}

// setSeg copies seg.
func (f *forest) setSeg(v int32, seg []int32) {
	f.save(v)
	f.unindex(v)
	x := &f.nodes[v]
	x.seg = append(x.seg[:0], seg...)
	w := f.weigh(seg)
	f.cost += w - x.w
	x.w = w
	f.reindex(v)
}

func (f *forest) unindex(v int32) {
	if p := f.nodes[v].up; p != none && f.wide[p] {
		for _, d := range f.nodes[v].seg {
			f.index.remove(kidKey(p, d), v)
		}
	}
}

func (f *forest) reindex(v int32) {
	if p := f.nodes[v].up; p != none && f.wide[p] {
		for _, d := range f.nodes[v].seg {
			f.index.add(kidKey(p, d), v)
		}
	}
}

// link makes v the first child of p.
func (f *forest) link(v, p int32) {
	f.save(v)
	f.save(p)
	x, y := &f.nodes[v], &f.nodes[p]
	x.up, x.prev, x.next = p, none, y.kid
	if y.kid != none {
		f.save(y.kid)
		f.nodes[y.kid].prev = v
	}
	y.kid = v
	y.kids++
	if f.wide[p] {
		f.reindex(v)
	} else if y.kids > wideKids {
		f.wide[p] = true
		for k := y.kid; k != none; k = f.nodes[k].next {
			f.reindex(k)
		}
	}
}

func (f *forest) unlink(v int32) {
	f.unindex(v)
	f.save(v)
	x := &f.nodes[v]
	f.save(x.up)
	p := &f.nodes[x.up]
	p.kids--
	if x.prev == none {
		p.kid = x.next
	} else {
		f.save(x.prev)
		f.nodes[x.prev].next = x.next
	}
	if x.next != none {
		f.save(x.next)
		f.nodes[x.next].prev = x.prev
	}
	x.up, x.prev, x.next = none, none, none
}

// leaf reports whether v has no children, which holds for the nodes of sets and for no other.
func (f *forest) leaf(v int32) bool { return f.nodes[v].kid == none }

// collapse merges v, if it has a single child left, into that child.
func (f *forest) collapse(v int32) int32 {
	if v == root || f.nodes[v].kids != 1 {
		return none
	}
	c, p := f.nodes[v].kid, f.nodes[v].up
	f.unlink(c)
	f.unlink(v)
	f.in = append(append(f.in[:0], f.nodes[v].seg...), f.nodes[c].seg...)
	f.setSeg(c, f.in)
	f.release(v)
	f.link(c, p)
	return c
}

// detach takes the subtree of v out; its segment becomes its whole set. It returns the node that v stood beside or
// below.
func (f *forest) detach(v int32) int32 {
	p := f.nodes[v].up
	f.unlink(v)
	f.path = append(f.path[:0], f.nodes[v].seg...)
	for a := p; a != root; a = f.nodes[a].up {
		f.path = append(f.path, f.nodes[a].seg...)
	}
	f.setSeg(v, f.path)
	c := f.collapse(p)
	if c == none {
		return p
	}
	f.settle(c)
	return c
}

// settle joins v, whose segment has grown, with the sibling o that shares most of it, and so on as long as one shares any. With p their
// parent:
//
//	p has no other child             p takes what both hold, and a child that keeps nothing is dissolved; then p's turn
//	o, an inner node, keeps nothing  v goes below o, or its children do if it keeps nothing either
//	v, an inner node, keeps nothing  o goes below v; then o's turn
//	otherwise                        both go below a new node with what both hold
func (f *forest) settle(v int32) {
	for {
		p, o := f.nodes[v].up, f.twin(v)
		if o == none {
			return
		}
		f.compare(v, o)
		emptyV, emptyO := len(f.carry) == 0 && !f.leaf(v), len(f.path) == 0 && !f.leaf(o)
		switch {
		case p != root && f.nodes[p].kids == 2:
			f.setSeg(v, f.carry)
			f.setSeg(o, f.path)
			f.in = append(f.in, f.nodes[p].seg...)
			f.setSeg(p, f.in)
			if emptyV {
				f.dissolve(v)
			}
			if emptyO {
				f.dissolve(o)
			}
			v = p
		case emptyO:
			f.lower(v, f.carry, o)
			if emptyV {
				f.dissolve(v)
				return
			}
		case emptyV:
			f.lower(o, f.path, v)
			v = o
		default:
			f.unlink(v)
			f.unlink(o)
			f.setSeg(v, f.carry)
			f.setSeg(o, f.path)
			u := f.alloc()
			f.setSeg(u, f.in)
			f.link(u, p)
			f.link(v, u)
			f.link(o, u)
			return
		}
	}
}

// compare fills in with what v and o both hold, carry with what only v holds, and path with what only o holds. The blocks of v are
// stamped, as twin leaves them.
func (f *forest) compare(v, o int32) {
	f.in, f.carry, f.path = f.in[:0], f.carry[:0], f.path[:0]
	for _, d := range f.nodes[o].seg {
		if f.stamp[d] == f.cur {
			f.in = append(f.in, d)
			f.stamp[d] = 0
		} else {
			f.path = append(f.path, d)
		}
	}
	for _, d := range f.nodes[v].seg {
		if f.stamp[d] == f.cur {
			f.carry = append(f.carry, d)
		}
	}
}

// lower moves v, with a segment that is left of its own, below one of its siblings.
func (f *forest) lower(v int32, seg []int32, sibling int32) {
	f.unlink(v)
	f.setSeg(v, seg)
	f.link(v, sibling)
}

// twin returns the sibling that shares most with the segment of v, which it stamps; none if none shares any.
func (f *forest) twin(v int32) int32 {
	seg := f.nodes[v].seg
	f.load(seg)
	best, most := none, int64(0)
	try := func(c int32) {
		if c == v {
			return
		}
		f.steps += 1 + len(f.nodes[c].seg)
		in := int64(0)
		for _, d := range f.nodes[c].seg {
			if f.stamp[d] == f.cur {
				in += f.weight[d]
			}
		}
		if in > most {
			best, most = c, in
		}
	}
	p := f.nodes[v].up
	if !f.wide[p] {
		for c := f.nodes[p].kid; c != none; c = f.nodes[c].next {
			try(c)
		}
		return best
	}
	t := &f.index
	for _, d := range seg {
		key := kidKey(p, d)
		f.steps++
		for i := t.slot(key); t.keys[i] != noKey; i = (i + 1) & (len(t.keys) - 1) {
			if t.keys[i] == key {
				try(t.kids[i])
			}
		}
	}
	return best
}

// dissolve hands the children of v to its parent.
func (f *forest) dissolve(v int32) {
	p := f.nodes[v].up
	f.unlink(v)
	for c := f.nodes[v].kid; c != none; c = f.nodes[v].kid {
		f.unlink(c)
		f.link(c, p)
	}
	f.release(v)
}

// attach puts the detached x beside y (under y if x holds all of y's set; root: on its own). The blocks of x must be
// stamped, as find leaves them. Where an ancestor of y holds blocks that x lacks, the branch to y and x leaves it.
func (f *forest) attach(x, y int32) {
	f.path = f.path[:0]
	for v := y; v != root; v = f.nodes[v].up {
		f.path = append(f.path, v)
	}
	f.carry = f.carry[:0] // blocks above that x lacks
	p := root
	for i, v := range slices.Backward(f.path) {
		f.in = f.in[:0]
		for _, d := range f.nodes[v].seg {
			if f.stamp[d] == f.cur {
				f.in = append(f.in, d)
			} else {
				f.carry = append(f.carry, d)
			}
		}
		if len(f.carry) == 0 && (i > 0 || !f.leaf(v)) {
			p = v
			continue
		}
		if len(f.in) > 0 {
			fork := f.alloc() // where x's branch and v's part
			f.setSeg(fork, f.in)
			f.link(fork, p)
			f.unlink(v)
			f.setSeg(v, f.carry)
			f.link(v, fork)
			p = fork
		} else {
			f.setSeg(v, f.carry)
		}
		if i > 0 {
			c := f.path[i-1]
			f.unlink(c)
			f.link(c, p)
			f.collapse(v)
		}
	}
	for a := p; a != root; a = f.nodes[a].up {
		for _, d := range f.nodes[a].seg {
			f.stamp[d] = 0
		}
	}
	f.in = f.in[:0]
	for _, d := range f.nodes[x].seg {
		if f.stamp[d] == f.cur {
			f.in = append(f.in, d)
		}
	}
	f.setSeg(x, f.in)
	f.link(x, p)
}

// load stamps the blocks of a set.
func (f *forest) load(set []int32) {
	f.cur++
	if f.cur == 0 {
		clear(f.stamp)
		clear(f.seen)
		f.cur = 1
	}
	for _, d := range set {
		f.stamp[d] = f.cur
	}
}

// clone copies the nodes.
func (f *forest) clone() []node {
	out := slices.Clone(f.nodes)
	total := 0
	for i := range out {
		total += len(out[i].seg)
	}
	arena := make([]int32, 0, total)
	for i := range out {
		k := len(arena)
		arena = append(arena, out[i].seg...)
		out[i].seg = arena[k:len(arena):len(arena)]
	}
	return out
}
