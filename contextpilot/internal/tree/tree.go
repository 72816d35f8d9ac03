// Package tree is the live picture of an engine's prefix cache: a trie of the block sequences that were sent,
// with request IDs at the ends, least-recently-used order, and removal in O(h).
//
// A node is a block behind a certain prefix. It exists as long as a live request passes through it. Requests
// end at nodes; a request is removed by walking from its end towards the root until a node that others use.
// With a capacity, the least recently used leaf nodes are dropped as an LRU engine would drop them: requests
// that ended there then end one block earlier.
//
// Nodes and requests lie in pages and name each other by number: a node takes 36 bytes and costs the garbage
// collector nothing. Not safe for concurrent use.
package tree

import (
	"hash/maphash"
	"math"
	"math/bits"
	"math/rand/v2"
)

// Node names a node; [Root] is the empty prefix. IDs of removed nodes are used again.
type Node int32

// Root is the empty prefix.
const Root Node = 0

const none Node = -1

// Elem is one step of a path: a block's key and its length in tokens.
type Elem struct {
	Key    uint64
	Tokens int32
}

// Tree is the index. The zero value is not usable; see [New].
type Tree struct {
	nodes  pool[node]
	byKey  table // children of wide nodes
	reqs   pool[request]
	byID   table
	lru    pool[recency] // by number of node, with a capacity only
	stamps pool[stamp]   // by number of node
	clock  uint32

	shadow shadow // what should be in the index, with the build tag invariants

	oldest   int32 // requests in order of arrival
	newest   int32
	capacity int // tokens, 0: unlimited
	maxReqs  int
	tokens   int // resident, all nodes
	count    int // live nodes without the root
	dropped  int // requests that capacity or maxReqs cost
	forgot   func(id string)
	strings  maphash.Seed
	numbers  [2]uint64 // seed
}

// node is one of a doubly linked list of siblings, newest first. The list goes on into that of the requests that end
// at the parent: in first, or in next of the last child, > 0 is a child, < 0 minus the first request, 0 nothing.
type node struct {
	key        uint64
	depth      int32 // tokens from the root to the end of this block
	parent     Node
	first      int32
	next, prev int32  // siblings; prev of the newest is the oldest
	fan        uint32 // number of children, and the bits inTable, inPart and sure
}

const (
	// inTable marks a node whose children are found by table: those of other nodes are looked at one by one. Most
	// nodes have one child, and cost no slot.
	inTable = 1 << 31
	// inPart marks a node of whose block only the beginning is resident, see [Tree.Shrink]. It has no children.
	inPart = 1 << 30
	// sure marks a node that an answered request passed through: the engine has computed it. What is above is sure, too.
	sure = 1 << 29
	// marks are the bits of fan that count no children.
	marks = inTable | inPart | sure
	// wide is the number of children above which a node is marked; at half of it the mark is taken away.
	wide = 6
)

// New returns an empty index that holds at most capacity tokens (0: no limit) and maxRequests requests (0: no
// limit; the oldest go first).
// forgot, if not nil, is called with the ID of every request that leaves the index, for whatever reason; it must not use the tree.
func New(capacity, maxRequests int, forgot func(id string)) *Tree {
	if forgot == nil {
		forgot = func(string) {}
	}
	t := &Tree{
		capacity: capacity, maxReqs: maxRequests, forgot: forgot,
		strings: maphash.MakeSeed(), numbers: [2]uint64{rand.Uint64(), rand.Uint64()},
	}
	t.clear()
	return t
}

// Clear forgets everything.
func (t *Tree) Clear() {
	for r := t.oldest; r != 0; r = t.reqs.at(r).newer {
		t.forgot(t.reqs.at(r).id)
	}
	t.clear()
	t.shadow.clear(t)
}

func (t *Tree) clear() {
	t.nodes, t.reqs = newPool[node](), newPool[request]()
	t.byKey, t.byID = table{}, table{}
	t.nodes.at(0).parent = none
	t.oldest, t.newest = 0, 0
	t.tokens, t.count = 0, 0
	t.stamps = newPool[stamp]()
	if t.capacity > 0 {
		t.lru = newPool[recency]()
	}
}

// Capacity returns the bound on Tokens; 0: there is none.
func (t *Tree) Capacity() int { return t.capacity }

// Nodes returns the number of nodes without the root.
func (t *Tree) Nodes() int { return t.count }

// Tokens returns the number of tokens that all nodes hold.
func (t *Tree) Tokens() int { return t.tokens }

// Depth returns the number of tokens from the root to the end of n.
func (t *Tree) Depth(n Node) int { return int(t.node(n).depth) }

// Key returns the key of n's block.
func (t *Tree) Key(n Node) uint64 { return t.node(n).key }

// Fanout returns the number of n's children. O(1).
func (t *Tree) Fanout(n Node) int { return int(t.node(n).fan &^ marks) }

// Parent returns the node in front of n; -1 in front of the [Root].
func (t *Tree) Parent(n Node) Node { return t.node(n).parent }

// Children appends n's children to dst, the newest first.
func (t *Tree) Children(dst []Node, n Node) []Node {
	for c := t.node(n).first; c > 0; c = t.nodes.at(c).next {
		dst = append(dst, Node(c))
	}
	return dst
}

// Child returns the child of n with the given key. O(1).
func (t *Tree) Child(n Node, key uint64) (Node, bool) {
	x := t.node(n)
	if x.fan&inTable != 0 {
		h := t.edge(n, key)
		for c, at := t.byKey.first(h); c != 0; c, at = t.byKey.next(h, at) {
			if y := t.nodes.at(c); y.key == key && y.parent == n {
				return Node(c), true
			}
		}
		return none, false
	}
	for c := x.first; c > 0; {
		y := t.nodes.at(c)
		if y.key == key {
			return Node(c), true
		}
		c = y.next
	}
	return none, false
}

// Walk follows path from the root and returns the last node that is there in full, how many steps it took, and how
// many tokens of the path are resident: those of a block that is there in part are among them.
func (t *Tree) Walk(path []Elem) (n Node, steps, resident int) {
	n, steps, part := t.walk(path)
	if part != none {
		return n, steps, t.Depth(part)
	}
	return n, steps, t.Depth(n)
}

// walk is Walk; part is the node of a block that is there in part, or none.
func (t *Tree) walk(path []Elem) (n Node, steps int, part Node) {
	for i, e := range path {
		c, ok := t.Child(n, e.Key)
		if !ok {
			return n, i, none
		}
		if t.node(c).fan&inPart != 0 {
			return n, i, c
		}
		n = c
	}
	return n, len(path), none
}

// Insert adds a request that sent path, which must not be empty, and returns how many steps and tokens of it
// were there before, as [Tree.Walk] does. A live request of the same ID is removed first.
// O(len(path)) and the removals that capacity or maxRequests ask for.
func (t *Tree) Insert(id string, path []Elem) (steps, resident int) {
	if r := t.find(id); r != 0 {
		t.remove(r)
	}
	n, steps, part := t.walk(path)
	certain := t.certain(n, part)
	resident, rest := t.Depth(n), path[steps:]
	if part != none {
		resident = t.Depth(part)
		t.complete(part, rest[0])
		n, rest = part, rest[1:]
	}
	for _, e := range rest {
		n = t.grow(n, e)
	}
	r := t.newRequest(id)
	t.attach(r, n)
	t.touch(n)
	t.stamp(n)
	x := t.reqs.at(r)
	x.length, x.sure, x.since = int32(t.Depth(n)), certain, t.clock
	t.fit()
	for t.maxReqs > 0 && t.Len() > t.maxReqs {
		t.remove(t.oldest)
		t.dropped++
	}
	t.shadow.insert(t, id, path, steps, resident)
	return steps, resident
}

func (t *Tree) node(n Node) *node { return t.nodes.at(int32(n)) }

// edge hashes what a child is found by.
func (t *Tree) edge(parent Node, key uint64) uint32 {
	hi, lo := bits.Mul64(key^t.numbers[0], uint64(parent)^t.numbers[1])
	return uint32((hi ^ lo) >> 32)
}

func (t *Tree) hash(s string) uint32 { return uint32(maphash.String(t.strings, s) >> 32) }

// ends returns the place of n's first request, negative, or 0 if none ends there.
func (t *Tree) ends(n Node) *int32 {
	x := t.node(n)
	if x.first <= 0 {
		return &x.first
	}
	return &t.nodes.at(t.nodes.at(x.first).prev).next
}

// complete makes c whole, which stands for e and is there in part. Requests that end in it end before it from now on:
// the rest is another's, and may go without a word about them.
func (t *Tree) complete(c Node, e Elem) {
	n := t.node(c).parent
	for r := -*t.ends(c); r != 0; r = -*t.ends(c) {
		t.end(r, n)
	}
	x := t.node(c)
	full := deeper(t.node(n).depth, int(e.Tokens))
	t.tokens += int(full - x.depth)
	x.depth = full
	x.fan &^= inPart | sure
}

// deeper adds tokens to a depth, up to what can be counted: two thousand million tokens.
func deeper(depth int32, tokens int) int32 {
	return int32(min(int64(depth)+int64(tokens), math.MaxInt32))
}

func (t *Tree) grow(parent Node, e Elem) Node {
	c := t.nodes.take()
	p := t.node(parent)
	x := node{key: e.Key, depth: deeper(p.depth, int(e.Tokens)), parent: parent, next: p.first, prev: c}
	if p.first > 0 {
		newest := t.nodes.at(p.first)
		x.prev, newest.prev = newest.prev, c
	}
	*t.nodes.at(c) = x
	p.first = c
	p.fan++
	switch {
	case p.fan&inTable != 0:
		t.byKey.add(t.edge(parent, e.Key), c)
	case p.fan&^marks > wide:
		p.fan |= inTable
		for k := p.first; k > 0; k = t.nodes.at(k).next {
			t.byKey.add(t.edge(parent, t.nodes.at(k).key), k)
		}
	}
	t.tokens += int(x.depth - p.depth)
	t.count++
	return Node(c)
}

// cut removes a node that has neither children nor requests.
func (t *Tree) cut(n Node) {
	c := int32(n)
	x := t.nodes.at(c)
	p := t.node(x.parent)
	if p.first == c {
		p.first = x.next
	} else {
		t.nodes.at(x.prev).next = x.next
	}
	switch {
	case x.next > 0:
		t.nodes.at(x.next).prev = x.prev
	case p.first > 0:
		t.nodes.at(p.first).prev = x.prev
	}
	p.fan--
	if p.fan&inTable != 0 {
		t.byKey.remove(t.edge(x.parent, x.key), c)
		if p.fan&^marks == wide/2 {
			p.fan &^= inTable
			for k := p.first; k > 0; k = t.nodes.at(k).next {
				t.byKey.remove(t.edge(x.parent, t.nodes.at(k).key), k)
			}
		}
	}
	t.tokens -= int(x.depth - p.depth)
	t.count--
	t.unlink(c)
	t.nodes.give(c)
}
