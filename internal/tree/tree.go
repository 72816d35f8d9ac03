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

import "fmt"

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

type request struct {
	id           string
	end          Node
	prev, next   int32 // requests that end at the same node
	older, newer int32 // order of arrival
	owner        string
	served       bool
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

// Len returns the number of live requests.
func (t *Tree) Len() int { return len(t.byID) }

// Nodes returns the number of nodes without the root.
func (t *Tree) Nodes() int { return t.count }

// Dropped returns how many requests have left the index for its capacity or for their number.
func (t *Tree) Dropped() int { return t.dropped }

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

// Resident returns the number of tokens of the request's path that are still in the index.
func (t *Tree) Resident(id string) (tokens int, ok bool) {
	r, ok := t.byID[id]
	if !ok {
		return 0, false
	}
	return t.Depth(t.reqs[r].end), true
}

// Serve marks the request as answered and tells whether it is live and was not marked before.
func (t *Tree) Serve(id string) (fresh, ok bool) {
	r, ok := t.byID[id]
	if !ok {
		return false, false
	}
	fresh = !t.reqs[r].served
	t.reqs[r].served = true
	return fresh, true
}

// Owner returns what Insert was given as owner, and whether the request was marked by Serve.
func (t *Tree) Owner(id string) (owner string, served, ok bool) {
	r, ok := t.byID[id]
	if !ok {
		return "", false, false
	}
	return t.reqs[r].owner, t.reqs[r].served, true
}

// Extend lengthens the last block of the request's path by tokens, if nothing follows it.
func (t *Tree) Extend(id string, tokens int) {
	r, ok := t.byID[id]
	if !ok {
		return
	}
	n := &t.nodes[t.reqs[r].end]
	if len(n.kids) > 0 {
		return
	}
	n.tokens += int32(tokens)
	n.depth += int32(tokens)
	t.tokens += tokens
	t.fit()
}

func (t *Tree) fit() {
	for t.capacity > 0 && t.tokens > t.capacity && t.last != none {
		t.dropLeaf(t.last)
	}
}

// Remove takes a request out: O(h) nodes, none of which another request uses.
func (t *Tree) Remove(id string) bool {
	r, ok := t.byID[id]
	if ok {
		t.removeRequest(r)
	}
	return ok
}

func (t *Tree) removeRequest(r int32) {
	end := t.reqs[r].end
	t.detach(r)
	t.forget(r)
	t.prune(end)
}

// Shrink makes the request end at the last node of its path that lies within tokens; what only it used behind
// that is removed. Nothing left: as Remove.
func (t *Tree) Shrink(id string, tokens int) bool {
	r, ok := t.byID[id]
	if !ok {
		return false
	}
	end := t.reqs[r].end
	to := end
	for to != Root && t.Depth(to) > tokens {
		to = t.nodes[to].parent
	}
	t.detach(r)
	if to == Root {
		t.forget(r)
	} else {
		t.attach(r, to)
	}
	t.prune(end)
	return true
}

// prune removes n and what is above it as long as nobody uses it.
func (t *Tree) prune(n Node) {
	for n != Root && t.nodes[n].reqs == none && len(t.nodes[n].kids) == 0 {
		parent := t.nodes[n].parent
		t.cut(n)
		n = parent
	}
}

func (t *Tree) newRequest(id string) int32 {
	var r int32
	if k := len(t.freeReq); k > 0 {
		r = t.freeReq[k-1]
		t.freeReq = t.freeReq[:k-1]
	} else {
		r = int32(len(t.reqs))
		t.reqs = append(t.reqs, request{})
	}
	t.reqs[r] = request{id: id, prev: none, next: none, older: t.newest, newer: none}
	if t.newest != none {
		t.reqs[t.newest].newer = r
	} else {
		t.oldest = r
	}
	t.newest = r
	t.byID[id] = r
	return r
}

func (t *Tree) forget(r int32) {
	x := &t.reqs[r]
	if x.older != none {
		t.reqs[x.older].newer = x.newer
	} else {
		t.oldest = x.newer
	}
	if x.newer != none {
		t.reqs[x.newer].older = x.older
	} else {
		t.newest = x.older
	}
	delete(t.byID, x.id)
	t.forgot(x.id)
	*x = request{prev: none, next: none, older: none, newer: none}
	t.freeReq = append(t.freeReq, r)
}

func (t *Tree) attach(r int32, n Node) {
	x, e := &t.reqs[r], &t.nodes[n]
	x.end, x.prev, x.next = n, none, e.reqs
	if e.reqs != none {
		t.reqs[e.reqs].prev = r
	}
	e.reqs = r
}

func (t *Tree) detach(r int32) {
	x := &t.reqs[r]
	if x.prev != none {
		t.reqs[x.prev].next = x.next
	} else {
		t.nodes[x.end].reqs = x.next
	}
	if x.next != none {
		t.reqs[x.next].prev = x.prev
	}
	x.prev, x.next = none, none
}

// Check verifies what must always hold and returns the first thing that does not. For tests.
func (t *Tree) Check() error {
	tokens, count := 0, 0
	ends := map[int32]Node{}
	var walk func(n Node) error
	walk = func(n Node) error {
		x := &t.nodes[n]
		for r := x.reqs; r != none; r = t.reqs[r].next {
			ends[r] = n
			if t.reqs[r].end != n {
				return fmt.Errorf("request %q is listed at node %d but ends at %d", t.reqs[r].id, n, t.reqs[r].end)
			}
		}
		if n != Root {
			tokens, count = tokens+int(x.tokens), count+1
			if x.reqs == none && len(x.kids) == 0 {
				return fmt.Errorf("node %d is used by nobody", n)
			}
		}
		for _, k := range x.kids {
			c := &t.nodes[k]
			if c.parent != n || c.depth != x.depth+c.tokens {
				return fmt.Errorf("node %d: parent %d, depth %d below %d", k, c.parent, c.depth, x.depth)
			}
			if got, ok := t.Child(n, c.key); !ok || got != k {
				return fmt.Errorf("node %d: key %x leads to %d", n, c.key, got)
			}
			if err := walk(k); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(Root); err != nil {
		return err
	}
	if tokens != t.tokens || count != t.count {
		return fmt.Errorf("%d tokens in %d nodes, counted %d in %d", t.tokens, t.count, tokens, count)
	}
	if t.nodes[Root].reqs != none {
		return fmt.Errorf("request %q ends at the root", t.reqs[t.nodes[Root].reqs].id)
	}
	for id, r := range t.byID {
		if n, ok := ends[r]; !ok || t.reqs[r].id != id {
			return fmt.Errorf("request %q (ends at %d) is not in the tree", id, n)
		}
	}
	if len(ends) != len(t.byID) {
		return fmt.Errorf("%d requests in the tree, %d by ID", len(ends), len(t.byID))
	}
	return t.checkLRU()
}

func (t *Tree) checkLRU() error {
	if t.capacity == 0 {
		return nil
	}
	if t.tokens > t.capacity {
		return fmt.Errorf("%d tokens in a capacity of %d", t.tokens, t.capacity)
	}
	age := map[Node]int{}
	for n := t.first; n != none; n = t.nodes[n].next {
		age[n] = len(age)
	}
	if len(age) != t.count {
		return fmt.Errorf("%d nodes in LRU order, %d live", len(age), t.count)
	}
	for n, a := range age {
		if p := t.nodes[n].parent; p != Root && age[p] > a {
			return fmt.Errorf("node %d is younger than its parent %d", n, p)
		}
	}
	return nil
}
