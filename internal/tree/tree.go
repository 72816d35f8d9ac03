// Package tree is the live picture of an engine's prefix cache: a trie of the block sequences that were sent,
// with request IDs at the ends, least-recently-used order, and removal in O(h).
//
// A node is a block behind a certain prefix. It exists as long as a live request passes through it. Requests
// end at nodes; a request is removed by walking from its end towards the root until a node that others use.
// With a capacity, the least recently used leaf nodes are dropped as an LRU engine would drop them: requests
// that ended there then end one block earlier.
//
// Nodes live in one slice and name each other by index, so that a large index costs the garbage collector
// little. Not safe for concurrent use.
package tree

// Node names a node; [Root] is the empty prefix. IDs of removed nodes are used again.
type Node int32

// Root is the empty prefix.
const Root Node = 0

const none = -1

// wide is the number of children from which a node keeps a map of them.
const wide = 12

// Elem is one step of a path: a block's key and its length in tokens.
type Elem struct {
	Key    uint64
	Tokens int32
}

// Tree is the index. The zero value is not usable; see [New].
type Tree struct {
	nodes    []node
	freeNode []Node
	reqs     []request
	freeReq  []int32
	byID     map[string]int32
	oldest   int32 // requests in order of arrival
	newest   int32
	capacity int // tokens, 0: unlimited
	maxReqs  int
	tokens   int // resident, all nodes
	count    int // live nodes without the root
	dropped  int // requests that capacity or maxReqs cost
	forgot   func(id string)
	// Least recently used order of nodes, kept only with a capacity. A parent is never older than its child, so
	// the last node is always a leaf.
	first, last Node
}

type node struct {
	key        uint64
	tokens     int32
	depth      int32 // tokens from the root to the end of this block
	parent     Node
	slot       int32 // position among the parent's kids
	reqs       int32 // first request that ends here
	prev, next Node  // LRU neighbours
	kids       []Node
	byKey      map[uint64]Node // wide nodes only
}

// New returns an empty index that holds at most capacity tokens (0: no limit) and maxRequests requests (0: no
// limit; the oldest go first).
// forgot, if not nil, is told the ID of every request that leaves the index, however it does; it must not use the tree.
func New(capacity, maxRequests int, forgot func(id string)) *Tree {
	if forgot == nil {
		forgot = func(string) {}
	}
	t := &Tree{capacity: capacity, maxReqs: maxRequests, forgot: forgot}
	t.Clear()
	return t
}

// Clear forgets everything.
func (t *Tree) Clear() {
	for id := range t.byID {
		t.forgot(id)
	}
	t.nodes = []node{{parent: none, reqs: none, prev: none, next: none}}
	t.freeNode, t.reqs, t.freeReq = nil, nil, nil
	t.byID = map[string]int32{}
	t.oldest, t.newest = none, none
	t.first, t.last = none, none
	t.tokens, t.count = 0, 0
}

// Nodes returns the number of nodes without the root.
func (t *Tree) Nodes() int { return t.count }

// Tokens returns the number of tokens that all nodes hold.
func (t *Tree) Tokens() int { return t.tokens }

// Depth returns the number of tokens from the root to the end of n.
func (t *Tree) Depth(n Node) int { return int(t.nodes[n].depth) }

// Key returns the key of n's block.
func (t *Tree) Key(n Node) uint64 { return t.nodes[n].key }

// Children returns n's children; the slice belongs to the tree.
func (t *Tree) Children(n Node) []Node { return t.nodes[n].kids }

// Child returns the child of n with the given key. O(1).
func (t *Tree) Child(n Node, key uint64) (Node, bool) {
	p := &t.nodes[n]
	if p.byKey != nil {
		c, ok := p.byKey[key]
		return c, ok
	}
	for _, c := range p.kids {
		if t.nodes[c].key == key {
			return c, true
		}
	}
	return none, false
}

// Walk follows path from the root and returns the last node that exists and how many steps it took.
func (t *Tree) Walk(path []Elem) (n Node, steps int) {
	for i, e := range path {
		c, ok := t.Child(n, e.Key)
		if !ok {
			return n, i
		}
		n = c
	}
	return n, len(path)
}

// Insert adds a request that sent path, which must not be empty, and returns how many steps and tokens of it
// were there before. owner is kept for [Tree.Owner]. A live request of the same ID is removed first.
// O(len(path)) and the removals that capacity or maxRequests ask for.
func (t *Tree) Insert(id, owner string, path []Elem) (steps, resident int) {
	t.Remove(id)
	n, steps := t.Walk(path)
	resident = t.Depth(n)
	for _, e := range path[steps:] {
		n = t.grow(n, e)
	}
	r := t.newRequest(id)
	t.reqs[r].owner = owner
	t.attach(r, n)
	t.Touch(n)
	t.fit()
	for t.maxReqs > 0 && len(t.byID) > t.maxReqs {
		t.removeRequest(t.oldest)
		t.dropped++
	}
	return steps, resident
}

func (t *Tree) grow(parent Node, e Elem) Node {
	fresh := node{
		key: e.Key, tokens: e.Tokens, depth: t.nodes[parent].depth + e.Tokens,
		parent: parent, reqs: none, prev: none, next: none,
	}
	var c Node
	if k := len(t.freeNode); k > 0 {
		c = t.freeNode[k-1]
		t.freeNode = t.freeNode[:k-1]
		t.nodes[c] = fresh
	} else {
		c = Node(len(t.nodes))
		t.nodes = append(t.nodes, fresh)
	}
	p := &t.nodes[parent]
	t.nodes[c].slot = int32(len(p.kids))
	p.kids = append(p.kids, c)
	switch {
	case p.byKey != nil:
		p.byKey[e.Key] = c
	case len(p.kids) > wide:
		p.byKey = make(map[uint64]Node, 2*len(p.kids))
		for _, k := range p.kids {
			p.byKey[t.nodes[k].key] = k
		}
	}
	t.tokens += int(e.Tokens)
	t.count++
	return c
}

// cut removes a node that has neither children nor requests.
func (t *Tree) cut(n Node) {
	x := &t.nodes[n]
	p := &t.nodes[x.parent]
	end := len(p.kids) - 1
	moved := p.kids[end]
	p.kids[x.slot], t.nodes[moved].slot = moved, x.slot
	p.kids = p.kids[:end]
	if p.byKey != nil {
		delete(p.byKey, x.key)
	}
	t.unlink(n)
	t.tokens -= int(x.tokens)
	t.count--
	*x = node{parent: none, reqs: none, prev: none, next: none}
	t.freeNode = append(t.freeNode, n)
}
