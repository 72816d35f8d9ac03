package dispatch

import (
	"cmp"
	"slices"

	"github.com/ragpilot/ragpilot/internal/base/queue"
)

// tree decides which calls of a run may be sent. Its nodes are prefixes that several calls share. One call through a node goes first, its
// leader; the others wait until the prefix is laid down, which it is once the leader's answer begins. The leader goes on to the node
// below that needs the most rounds, so with enough places a run takes as few rounds as its shape allows. Not safe for concurrent use.
type tree struct {
	root  *node
	items []*item // in the order of the calls
	ready *queue.Queue[*item]
}

// node is a prefix that at least two calls share.
type node struct {
	parent *node // nil: the root, which stands for no prefix and is always laid down
	depth  int   // bytes of the prefix
	kids   []*node
	leaves []*item // calls that share nothing more with others
	rounds int     // how many calls must follow each other at least, until all through this node have begun
	laid   bool
	leader *item // the call that is to lay it down; nil: there is none now
}

// state says where a call is.
type state int

const (
	waiting state = iota // for a prefix
	ready                // in the queue
	behind               // of a call of another run, see beside
	flying               // with the engine
	delayed              // until it may be tried again
	done
)

// item is one call on its way.
type item struct {
	call  Call
	node  *node // the longest prefix that it shares with others
	rank  int   // ready calls go by it
	place int   // in the queue
	bytes int   // of its prompt
	state state
	track
}

// newTree builds the tree of calls. A prefix counts if it is at least least bytes longer than the one above it; less than 1: no call
// waits for another, and they go in their order. The work is about one comparison of each prompt with one before it.
func newTree(calls []Call, least int) *tree {
	t := &tree{root: &node{laid: true, rounds: 1}, items: make([]*item, len(calls))}
	t.ready = queue.New(func(a, b *item) bool { return a.rank < b.rank }, func(x *item) *int { return &x.place })
	for i, c := range calls {
		t.items[i] = &item{call: c, bytes: promptBytes(c.Request)}
	}
	if least < 1 {
		t.root.leaves = t.items
		for i, x := range t.items {
			x.node, x.rank = t.root, i
		}
		return t
	}
	var top branch
	for i, c := range calls {
		top.insert(i, flatten(c.Request))
	}
	t.attach(t.root, &top, least)
	t.measure(t.root)
	rank := 0
	t.number(t.root, &rank)
	return t
}

// attach adds what is below a branch to a node.
func (t *tree) attach(n *node, b *branch, least int) {
	if b.size() > 1 && b.depth-n.depth >= least {
		below := &node{parent: n, depth: b.depth}
		n.kids = append(n.kids, below)
		n = below
	}
	for _, i := range b.calls {
		t.items[i].node = n
		n.leaves = append(n.leaves, t.items[i])
	}
	for _, kid := range b.kids {
		t.attach(n, kid, least)
	}
}

// measure sets the rounds of all nodes below n, and sorts: nodes with most rounds first, calls with the longest answers first.
func (t *tree) measure(n *node) {
	most := 1
	if n.parent != nil && len(n.leaves) > 1 {
		most = 2
	}
	for _, kid := range n.kids {
		t.measure(kid)
	}
	slices.SortStableFunc(n.kids, func(a, b *node) int { return b.rounds - a.rounds })
	for i, kid := range n.kids {
		after := 0
		if i > 0 && n.parent != nil {
			after = 1 // it is not on the leader's way
		}
		most = max(most, after+kid.rounds)
	}
	if n.parent != nil && len(n.kids) > 0 && len(n.leaves) > 0 {
		most = max(most, 2)
	}
	n.rounds = most
	slices.SortStableFunc(n.leaves, func(a, b *item) int {
		return cmp.Or(b.call.Request.MaxTokens-a.call.Request.MaxTokens, b.bytes-a.bytes)
	})
}

// number ranks the calls below n: one node after the other, so that what runs at a time shares long prefixes, and the calls that share
// least at the end.
func (t *tree) number(n *node, rank *int) {
	for _, kid := range n.kids {
		t.number(kid, rank)
	}
	for _, x := range n.leaves {
		x.rank = *rank
		*rank++
	}
}

// start makes the first calls ready.
func (t *tree) start() { t.release(t.root) }

// release makes ready what only waited for a node.
func (t *tree) release(n *node) {
	for _, kid := range n.kids {
		if !kid.laid {
			t.lead(kid)
		}
	}
	for _, x := range n.leaves {
		if x.state == waiting {
			t.push(x)
		}
	}
}

// lead chooses a leader for a node that has none.
func (t *tree) lead(n *node) {
	if n.laid || n.leader != nil {
		return
	}
	x := n.first()
	if x == nil {
		return
	}
	for at := x.node; at != n.parent; at = at.parent {
		at.leader = x
	}
	t.push(x)
}

// first returns the waiting call below n that should lead, nil if none waits.
func (n *node) first() *item {
	for _, kid := range n.kids {
		if x := kid.first(); x != nil {
			return x
		}
	}
	for _, x := range n.leaves {
		if x.state == waiting {
			return x
		}
	}
	return nil
}

func (t *tree) push(x *item) {
	x.state = ready
	t.ready.Push(x)
}

// next takes the ready call that goes first; nil: none is ready.
func (t *tree) next() *item {
	if t.ready.Len() == 0 {
		return nil
	}
	x := t.ready.Top()
	t.ready.Remove(x)
	x.state = flying
	return x
}

// laid notes that the engine has computed a call's prompt.
func (t *tree) laid(x *item) {
	var fresh []*node
	for n := x.node; n != nil; n = n.parent {
		if !n.laid {
			n.laid, n.leader = true, nil
			fresh = append(fresh, n)
		}
	}
	for _, n := range slices.Backward(fresh) {
		t.release(n)
	}
}

// back takes a flying call back to be tried again later, see wake.
func (t *tree) back(x *item) {
	x.state = delayed
	t.resign(x)
}

// finish notes that nothing more is to be done for a call.
func (t *tree) finish(x *item) {
	x.state = done
	t.resign(x)
}

// resign gives the prefixes that a call was to lay down to others.
func (t *tree) resign(x *item) {
	var top *node
	for n := x.node; n != nil; n = n.parent {
		if n.leader == x {
			n.leader = nil
			top = n
		}
	}
	if top != nil {
		t.lead(top)
	}
}

// wake ends a call's delay.
func (t *tree) wake(x *item) {
	x.state = waiting
	var top *node
	for n := x.node; n != nil; n = n.parent {
		if !n.laid {
			top = n
		}
	}
	if top == nil {
		t.push(x)
		return
	}
	t.lead(top)
}

// unlay forgets what is laid down, for an engine that has none of it, and starts again. Flying and delayed calls stay what they are.
func (t *tree) unlay() {
	for t.ready.Len() > 0 {
		x := t.ready.Top()
		t.ready.Remove(x)
		x.state = waiting
	}
	t.root.clear()
	t.start()
}

func (n *node) clear() {
	n.laid, n.leader = n.parent == nil, nil
	for _, kid := range n.kids {
		kid.clear()
	}
}

// branch is a node of the radix tree from which a tree is made. Its prefix is the first depth bytes of text.
type branch struct {
	depth int
	text  string
	kids  []*branch
	calls []int // that end here
}

// insert adds a call.
func (b *branch) insert(i int, text string) {
	for b.depth < len(text) {
		// In depth-first order it is the last one.
		at := len(b.kids) - 1
		for at >= 0 && b.kids[at].text[b.depth] != text[b.depth] {
			at--
		}
		if at < 0 {
			b.kids = append(b.kids, &branch{depth: len(text), text: text, calls: []int{i}})
			return
		}
		kid := b.kids[at]
		n := b.depth + common(kid.text[b.depth:kid.depth], text[b.depth:])
		if n < kid.depth {
			kid = &branch{depth: n, text: text, kids: []*branch{kid}}
			b.kids[at] = kid
		}
		b = kid
	}
	b.calls = append(b.calls, i)
}

// size returns the number of ways on from here: more than one means that several calls share the prefix.
func (b *branch) size() int { return len(b.kids) + len(b.calls) }
