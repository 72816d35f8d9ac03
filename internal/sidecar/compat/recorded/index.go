package recorded

import (
	"context"
	"fmt"
	"time"

	"github.com/ragpilot/ragpilot/internal/base/lru"
	"github.com/ragpilot/ragpilot/internal/paper"
)

// Index is a live index of contexts with request IDs. It is not safe for concurrent use, but [Index.Reorder] does its
// long work without the lock that it is given.
type Index struct {
	opt      paper.Options
	tree     *paper.Tree
	nodes    []node                       // by NodeID
	requests *lru.Cache[string, *request] // oldest first: none is marked as used
	bare     *lru.Cache[string, struct{}] // those of them that have no context
	limit    int                          // requests, 0: any number
	peak     int                          // the most docs of all requests since the index was last compacted
	commits  int                          // batches that are being entered: nodes stay where they are
	next     int                          // of Add's IDs
	serial   int                          // of the next node
	cuts     int                          // how often something was removed: paths found before are void
	live     bool
	stats    Stats
}

// node is what the index knows of a tree node beside its docs: its number for callers, which is not given twice, and
// the tokens of its prompt, in all and beyond its parent's.
type node struct {
	number, tokens, extra int
}

// request is a context in the tree; leaf is None if only the ID is known.
type request struct {
	leaf paper.NodeID
	docs int
}

// Stats counts what an index holds and what was done. Insertions are contexts that came after the first batch;
// Removals are contexts that were taken out, by whomever.
type Stats struct {
	Nodes, Tokens, Requests        int
	Searches, Insertions, Removals int
	SearchTime                     time.Duration
}

// NewIndex returns an empty index; opt.Recorded is set.
func NewIndex(opt paper.Options) *Index {
	opt.Recorded = true
	if opt.Hold == nil {
		opt.Hold = func([]paper.Doc, int) {}
	}
	weighed := lru.Options[string, *request]{Weigh: func(_ string, r *request) int { return r.docs }}
	return &Index{opt: opt, tree: paper.NewTree(opt), requests: lru.With(weighed), bare: lru.With(lru.Options[string, struct{}]{})}
}

// Bound makes the oldest requests leave when there are more than this many, or more than 64 docs for each of them. Those without
// a context take half of the places at most, so that they do not push out all contexts.
func (x *Index) Bound(requests int) { x.limit = max(requests, 1) }

// Live reports whether anything was added yet.
func (x *Index) Live() bool { return x.live }

// Found is a search result: the path of child positions, the docs shared with the node there, and whether the
// node's first doc is among them. Node is the node's number, -1 if nothing was found.
type Found struct {
	Path    []int
	Node    int
	Overlap int
	Prefix  bool
}

// Search looks a context of distinct docs up without changing the index.
func (x *Index) Search(c []paper.Doc) Found {
	if !x.live {
		return Found{Path: []int{}, Node: -1}
	}
	m := x.search(c)
	if m.Node == paper.None {
		return Found{Path: []int{}, Node: -1}
	}
	return Found{Path: x.tree.Path(m.Node), Node: x.nodes[m.Node].number, Overlap: m.Shared, Prefix: m.Prefix}
}

func (x *Index) search(c []paper.Doc) paper.Match {
	start := time.Now()
	m := x.tree.Search(c)
	x.stats.Searches++
	x.stats.SearchTime += time.Since(start)
	return m
}

// Len returns the number of nodes.
func (x *Index) Len() int { return x.tree.Len() }

// Tree gives read access to the nodes.
func (x *Index) Tree() *paper.Tree { return x.tree }

// Stats returns the counts; nodes count from the first batch on.
func (x *Index) Stats() Stats {
	s := x.stats
	s.Requests = x.requests.Len()
	if x.live {
		s.Nodes = x.tree.Len()
	}
	return s
}

const (
	// requestBytes is about what a request takes: its ID, its places in the map and the queue, and its node.
	requestBytes = 560
	// docBytes is about what each doc of a request takes in the tree.
	docBytes = 50
	// slotBytes is about what the place of a removed node takes.
	slotBytes = 130
)

// Weight is about how many bytes the index takes, without its docs' numbers.
func (x *Index) Weight() int {
	nodes := x.tree.Len()
	return requestBytes*x.requests.Len() + docBytes*counted(x.requests.Weight(), x.peak) + slotBytes*(counted(nodes, x.tree.Slots())-nodes)
}

// Requests returns the IDs that are known, oldest first.
func (x *Index) Requests() []string {
	ids := make([]string, 0, x.requests.Len())
	for id := range x.requests.Backward() {
		ids = append(ids, id)
	}
	return ids
}

// Known reports whether an ID is known.
func (x *Index) Known(id string) bool { return x.requests.Has(id) }

// Add is [Index.Reorder] for one goroutine, with IDs r1, r2 and so on.
func (x *Index) Add(ctx context.Context, contexts [][]paper.Doc) (Step, error) {
	ids := make([]string, len(contexts))
	for i := range ids {
		x.next++
		ids[i] = fmt.Sprintf("r%d", x.next)
	}
	return x.Reorder(ctx, noLock{}, Job{Contexts: contexts, IDs: ids, Options: x.opt})
}

// Insert enters a context of distinct docs as it is: below the node that the path leads to, beside it if that is a
// leaf, below the root if the path leads nowhere.
func (x *Index) Insert(id string, c []paper.Doc, path []int, tokens int) Place {
	if !x.live {
		x.live = true
		x.at(x.tree.Root()).number = x.number()
	}
	at := x.tree.At(path)
	// A match without a prefix makes a sibling, one with it a child; a leaf would be split.
	m := paper.Match{Node: at, Prefix: at != paper.None && !x.tree.Leaf(at)}
	x.stats.Insertions++
	p := x.insert(id, c, m, tokens)
	x.trim(noLock{})
	return p
}

// Place is where a context went: the path and number of its leaf.
type Place struct {
	Path []int
	Node int
}

// insert adds a leaf, and with it a new inner node where a leaf is split.
func (x *Index) insert(id string, order []paper.Doc, m paper.Match, tokens int) Place {
	before := x.tree.Len()
	leaf := x.tree.Insert(order, m)
	inner := x.tree.Parent(leaf)
	if x.tree.Len() == before+2 {
		x.split(inner)
	}
	above := x.at(inner).tokens
	*x.at(leaf) = node{number: x.number(), tokens: tokens, extra: max(tokens-above, 0)}
	x.stats.Tokens += x.at(leaf).extra
	x.remember(id, leaf, len(order))
	return Place{Path: x.tree.Path(leaf), Node: x.at(leaf).number}
}

// split gives a new inner node its share of the tokens of the leaf that it was put above.
func (x *Index) split(inner paper.NodeID) {
	leaf := x.at(x.tree.Children(inner)[0])
	share := float64(len(x.tree.Docs(inner))) / float64(max(len(x.tree.Docs(x.tree.Children(inner)[0])), 1))
	above := x.at(x.tree.Parent(inner)).tokens
	n := node{number: x.number(), tokens: int(float64(above) + float64(leaf.tokens-above)*share)}
	n.extra = max(n.tokens-above, 0)
	x.stats.Tokens += n.extra - leaf.extra
	leaf.extra = max(leaf.tokens-n.tokens, 0)
	x.stats.Tokens += leaf.extra
	*x.at(inner) = n
}

// at returns what is known of a tree node; the pointer is good until the next call.
func (x *Index) at(n paper.NodeID) *node {
	for int(n) >= len(x.nodes) {
		x.nodes = append(x.nodes, node{})
	}
	return &x.nodes[n]
}

func (x *Index) number() int {
	x.serial++
	return x.serial - 1
}

func (x *Index) remember(id string, leaf paper.NodeID, docs int) {
	x.bare.Delete(id)
	x.requests.Put(id, &request{leaf: leaf, docs: docs})
	x.peak = max(x.peak, x.requests.Weight())
}
