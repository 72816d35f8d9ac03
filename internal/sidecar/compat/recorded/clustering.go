package recorded

import (
	"context"
	"fmt"

	"github.com/ragpilot/ragpilot/internal/paper"
)

// Clustering is a batch that was ordered by itself: the answer where no index is kept, and what a live index begins
// with or takes over. Orders are in input order; Order is the execution order.
type Clustering struct {
	Orders        [][]paper.Doc
	Order         []int
	Groups        [][]int
	Nodes, Leaves int // of the tree; an empty one is a root that counts as a leaf

	tree   *paper.Tree
	leaves []paper.NodeID
	paths  [][]int
	opt    paper.Options
}

// Cluster orders contexts of distinct docs by clustering: O(n²) time, 12·n²/2 bytes while it runs. It ends early with
// ctx's error. Docs should be numbered densely, as tables are indexed by them.
func Cluster(ctx context.Context, opt paper.Options, contexts [][]paper.Doc) (*Clustering, error) {
	opt.Recorded = true
	c := &Clustering{tree: paper.NewTree(opt), opt: opt, paths: make([][]int, len(contexts))}
	b, err := c.tree.Build(ctx, contexts)
	if err != nil {
		return nil, fmt.Errorf("cluster %d contexts: %w", len(contexts), err)
	}
	c.Orders, c.leaves = b.Orders, b.Leaves
	for i, leaf := range b.Leaves {
		c.paths[i] = []int{}
		if leaf != paper.None {
			c.paths[i] = c.tree.Path(leaf)
		}
	}
	c.Order, c.Groups = paper.Schedule(c.paths)
	c.Nodes, c.Leaves = c.tree.Len(), childless(c.tree, c.tree.Root())
	return c, nil
}

func childless(t *paper.Tree, n paper.NodeID) int {
	kids := t.Children(n)
	if len(kids) == 0 {
		return 1
	}
	count := 0
	for _, k := range kids {
		count += childless(t, k)
	}
	return count
}
