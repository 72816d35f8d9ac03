package contextpilot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/internal/paper"
)

// paperPolicy is ContextPilot as published: search in a tree of clustered contexts and the matched node's prefix
// first (Alg. 1 and 2); offline hierarchical clustering and scheduling by search path (Alg. 4 and 5).
type paperPolicy struct {
	tree   *paper.Tree
	docs   map[Key]paper.Doc
	blocks []clusterDoc // by Doc
	free   []paper.Doc
	leaves map[string]paper.NodeID // request → its leaf
	last   searched
	set    []paper.Doc // scratch
}

// clusterDoc is what is known of a block while somebody holds it.
type clusterDoc struct {
	key  Key
	id   string
	uses int
}

// searched is the outcome of Order until Sent inserts it.
type searched struct {
	request string
	match   paper.Match
	order   []paper.Doc
}

func newPaper() *paperPolicy {
	c := &paperPolicy{docs: map[Key]paper.Doc{}, leaves: map[string]paper.NodeID{}}
	c.tree = paper.NewTree(paper.Options{Alpha: paper.DefaultAlpha, Less: c.less, Hold: c.hold})
	return c
}

func (*paperPolicy) Name() string { return "paper" }

// less orders a shared prefix by block ID: numbers first, by value as in the paper's examples, others by bytes.
func (c *paperPolicy) less(a, b paper.Doc) bool {
	x, y := c.blocks[a].id, c.blocks[b].id
	switch n := number(x); {
	case n != number(y):
		return n
	case n && len(x) != len(y):
		return len(x) < len(y)
	}
	return x < y
}

// number reports whether s is a decimal number in its usual form.
func number(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == "" && (s[0] != '0' || len(s) == 1)
}

// hold counts the nodes of the tree that hold a doc, and callers between intern and release.
func (c *paperPolicy) hold(docs []paper.Doc, delta int) {
	for _, d := range docs {
		b := &c.blocks[d]
		if b.uses += delta; b.uses == 0 {
			delete(c.docs, b.key)
			*b = clusterDoc{}
			c.free = append(c.free, d)
		}
	}
}

// intern returns the candidates as docs and holds them; the caller gives them back with hold(docs, -1).
func (c *paperPolicy) intern(dst []paper.Doc, blocks []Candidate) []paper.Doc {
	for _, b := range blocks {
		d, ok := c.docs[b.Key]
		if !ok {
			if n := len(c.free); n > 0 {
				d = c.free[n-1]
				c.free = c.free[:n-1]
			} else {
				d = paper.Doc(len(c.blocks))
				c.blocks = append(c.blocks, clusterDoc{})
			}
			c.blocks[d] = clusterDoc{key: b.Key, id: strings.Clone(b.ID)}
			c.docs[b.Key] = d
		}
		c.blocks[d].uses++
		dst = append(dst, d)
	}
	return dst
}

// Order searches the index. Behind a conversation's history no other prompt can be met: retrieval order.
func (c *paperPolicy) Order(dst []int, q Query) []int {
	c.settle()
	if q.Continued() || len(q.Blocks) == 0 {
		return identity(dst, len(q.Blocks))
	}
	c.set = c.intern(c.set[:0], q.Blocks) // held until settle
	m := c.tree.Search(c.set)
	order := c.tree.Order(c.last.order[:0], c.set, m)
	c.last = searched{request: q.Request, match: m, order: order}
	return positionsIn(dst, c.set, order)
}

// settle lets go of the blocks of the last search.
func (c *paperPolicy) settle() {
	c.hold(c.last.order, -1)
	c.last = searched{order: c.last.order[:0]}
}

// Sent inserts the context as it was sent, at the place that Order's search found for it; it searches again if
// another request came between or another order was sent.
func (c *paperPolicy) Sent(request string, q Query, order []int) {
	if q.Continued() || len(q.Blocks) == 0 {
		return
	}
	c.set = c.intern(c.set[:0], q.Blocks)
	sent := make([]paper.Doc, len(order))
	for i, j := range order {
		sent[i] = c.set[j]
	}
	match := c.last.match
	if c.last.request != request || !slices.Equal(c.last.order, sent) {
		match = c.tree.Search(sent)
	}
	c.leaves[request] = c.tree.Insert(sent, match)
	c.hold(c.set, -1)
	c.settle()
}

// Gone removes the request's leaf: O(h). What the last search found may go with it.
func (c *paperPolicy) Gone(request string) {
	leaf, ok := c.leaves[request]
	if !ok {
		return
	}
	c.settle()
	delete(c.leaves, request)
	c.tree.Remove(leaf)
}

// OrderBatch clusters all contexts, below what the index may hold already.
func (c *paperPolicy) OrderBatch(ctx context.Context, qs []Query) (orders [][]int, schedule []int, groups [][]int, err error) {
	c.settle()
	sets := make([][]paper.Doc, len(qs))
	for i, q := range qs {
		sets[i] = c.intern(nil, q.Blocks)
	}
	defer func() {
		for _, s := range sets {
			c.hold(s, -1)
		}
	}()
	batch, err := c.tree.Build(ctx, sets)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("cluster %d contexts: %w", len(qs), err)
	}
	paths := make([][]int, len(qs))
	for i, leaf := range batch.Leaves {
		orders = append(orders, positionsIn(nil, sets[i], batch.Orders[i]))
		if leaf != paper.None {
			paths[i] = c.tree.Path(leaf)
		}
	}
	schedule, groups = paper.Schedule(paths)
	return orders, schedule, groups, nil
}

// positionsIn appends for each doc of order its position in set.
func positionsIn(dst []int, set, order []paper.Doc) []int {
	for _, d := range order {
		for i, x := range set {
			if x == d {
				dst = append(dst, i)
				break
			}
		}
	}
	return dst
}
