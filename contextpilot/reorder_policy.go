package contextpilot

import (
	"context"
	"fmt"
	"iter"

	"github.com/ragpilot/ragpilot/contextpilot/internal/tree"
)

// Policy chooses the order in which blocks are sent. Each scope has its own instance, called with the scope's
// lock held: a Policy needs no lock, and must not block, log, or keep what it is given.
//
// A Policy may have more methods, of which the built-in ones make use. [Learner] and [BatchPolicy] are two groups of them; the others are
//
//	Peek(dst []int, q Query) (order []int, familiar int) // Order without learning, for Match; tokens of blocks that were sent lately
//	Await(requests [][]Key)                              // the blocks of requests that are about to follow, see PlanTogether; nil: none
//	Past() int                                           // blocks of earlier requests that it remembers, see Config.MaxHistory
//	ForgetPast(blocks int)                               // forget so many of the oldest, or all of fewer
//	Why() Why                                            // how its last order came about
type Policy interface {
	// Name is the name in plans, tables and metrics.
	Name() string
	// Order appends to dst the indexes 0…len(q.Blocks)−1 in the order to send. Anything but a permutation is a
	// fault, and the blocks go out as retrieved. It is also asked by [Pilot.Match] about requests that are then sent
	// elsewhere or not at all: what is learned should be learned from [Learner].Sent.
	Order(dst []int, q Query) []int
}

// Learner is implemented by a Policy that wants to know what became of its orders.
type Learner interface {
	// Sent is called once for each planned request with its blocks in the order that was sent, after Order.
	Sent(request string, q Query, order []int)
	// Gone is called when a request leaves the index. Requests that Sent never named may be among them.
	Gone(request string)
}

// BatchPolicy is implemented by a Policy that orders many requests better together than one by one.
type BatchPolicy interface {
	// OrderBatch returns for each query the order of its blocks, the order in which to run the queries, and groups
	// of queries that share a prefix (a partition of the execution order).
	OrderBatch(ctx context.Context, qs []Query) (orders [][]int, schedule []int, groups [][]int, err error)
}

// Query is what a Policy is asked: the blocks of one request that are to be placed, in retrieval order, each once.
type Query struct {
	Request string
	Blocks  []Candidate
	// Tree is what the engine is believed to hold, From the node behind which the blocks will stand.
	Tree View
	From Node

	continued bool
	careful   bool // a request should not compute more than if all were in retrieval order: Config.Top is TopNear
	gate      gate
}

// Continued reports whether the blocks stand behind a conversation's history, where no other request's prompt leads.
func (q Query) Continued() bool { return q.continued }

// Candidate is a block to be placed.
type Candidate struct {
	Key    Key
	ID     string
	Tokens int
	Score  float64
}

// Node is a place in the index: a sequence of blocks that was sent.
type Node = tree.Node

const (
	// Root is the beginning of every prompt of a scope.
	Root Node = tree.Root
	// NoNode is the From of a conversation's turn whose history is not in the index.
	NoNode Node = -1
)

// View is the read side of a scope's index, valid during the call it is given to: a [Policy]'s, or that of [Pilot.View].
type View struct {
	t     *tree.Tree
	tiers *tiers
}

// Child returns the node of block k behind n. O(1).
func (v View) Child(n Node, k Key) (Node, bool) {
	if n == NoNode {
		return NoNode, false
	}
	return v.t.Child(n, uint64(k))
}

// Children appends to dst the nodes behind n. The nodes of requests' ends, which hold no block, are among them.
func (v View) Children(dst []Node, n Node) []Node {
	if n == NoNode {
		return dst
	}
	return v.t.Children(dst, n)
}

// Fanout returns the number of nodes behind n that hold a block or a request's end. O(1).
func (v View) Fanout(n Node) int {
	if n == NoNode {
		return 0
	}
	return v.t.Fanout(n)
}

// Parent returns the node in front of n; [NoNode] in front of the [Root].
func (v View) Parent(n Node) Node {
	if n == NoNode {
		return NoNode
	}
	return v.t.Parent(n)
}

// Latest goes through the live requests, the one that came last first: the node of each one's last block, or what its prompt
// has in front of that if it has none. O(1) a request.
func (v View) Latest() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for id, n := range v.t.Latest() {
			if n != Root && v.t.Key(n) == ownKey(id) {
				n = v.t.Parent(n)
			}
			if !yield(n) {
				return
			}
		}
	}
}

// Size returns the number of live requests, and of the tokens that are held for them. O(1).
func (v View) Size() (requests, tokens int) { return v.t.Len(), v.t.Tokens() }

// Capacity returns [Config].Capacity; 0: not known.
func (v View) Capacity() int { return v.t.Capacity() }

// Age returns the number of requests that were sent since n last was.
func (v View) Age(n Node) int { return v.t.Age(n) }

// LoadCost returns what it costs to load a token of n's block into the engine's memory, with computing it as 1.
func (v View) LoadCost(n Node) float64 {
	if v.tiers == nil {
		return 0
	}
	return v.tiers.costs[v.t.Tier(n)]
}

// Key returns the block that n ends with.
func (v View) Key(n Node) Key { return Key(v.t.Key(n)) }

// Tokens returns the number of tokens from the root to the end of n.
func (v View) Tokens(n Node) int { return v.t.Depth(n) }

// namedPolicy makes a built-in policy.
type namedPolicy struct {
	name string
	make func() Policy
}

// policies is the table of built-in policies; it is never changed.
func policies() []namedPolicy {
	return []namedPolicy{
		{"retrieval", func() Policy { return retrieval{} }},
		{"sorted", func() Policy { return sorted{} }},
		{"frequency", func() Policy { return newFrequency() }},
		{"recency", func() Policy { return newRecency() }},
		{"random", func() Policy { return random{} }},
		{"knowledge-tree", func() Policy { return knowledgeTree{} }},
		{"paper", func() Policy { return newPaper() }},
		{"best", func() Policy { return newBest(bestOptions{}) }},
		{"oracle", func() Policy { return &oracle{} }},
	}
}

// formerPaper is the earlier name of the policy `paper`, which is accepted wherever a policy is named.
const formerPaper = "contextpilot"

// PolicyNames returns the names of the built-in policies.
func PolicyNames() []string {
	table := policies()
	names := make([]string, len(table))
	for i, p := range table {
		names[i] = p.name
	}
	return names
}

// NewPolicy returns a fresh instance of a built-in policy; the error wraps ErrUnknownPolicy and lists the names.
func NewPolicy(name string) (Policy, error) {
	if name == formerPaper {
		name = "paper"
	}
	for _, p := range policies() {
		if p.name == name {
			return p.make(), nil
		}
	}
	return nil, fmt.Errorf("%w %q: want one of %v", ErrUnknownPolicy, name, PolicyNames())
}
