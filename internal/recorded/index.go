package recorded

import (
	"context"
	"fmt"
	"slices"

	"github.com/ragpilot/ragpilot/internal/cluster"
)

// Index is a live index of contexts with request IDs. Not safe for concurrent use.
type Index struct {
	opt    cluster.Options
	tree   *cluster.Tree
	leaves map[string]cluster.NodeID
	next   int
	live   bool
}

// NewIndex returns an empty index; opt.Recorded is set.
func NewIndex(opt cluster.Options) *Index {
	opt.Recorded = true
	return &Index{opt: opt, tree: cluster.NewTree(opt), leaves: map[string]cluster.NodeID{}}
}

// Found is a search result: the path of child positions, the docs shared with the node there, and whether the
// node's first doc is among them.
type Found struct {
	Path    []int
	Overlap int
	Prefix  bool
}

// Step is the answer to one batch. Orders and IDs are in input order; Order is the execution order.
type Step struct {
	Orders          [][]cluster.Doc
	Order           []int
	Groups          [][]int
	IDs             []string
	Matched, Merged int
	Paths           [][]int
}

// Search looks a context up without changing the index.
func (x *Index) Search(c []cluster.Doc) Found {
	m := x.tree.Search(c)
	if m.Node == cluster.None {
		return Found{Path: []int{}}
	}
	return Found{Path: x.tree.Path(m.Node), Overlap: m.Shared, Prefix: m.Prefix}
}

// Len returns the number of nodes.
func (x *Index) Len() int { return x.tree.Len() }

// Tree gives read access to the nodes.
func (x *Index) Tree() *cluster.Tree { return x.tree }

// Add orders a batch: by clustering if the index is empty, otherwise by matching each context against it and
// clustering those that match nothing.
func (x *Index) Add(ctx context.Context, contexts [][]cluster.Doc) (Step, error) {
	if !x.live {
		return x.first(ctx, contexts)
	}
	st := Step{Orders: make([][]cluster.Doc, len(contexts)), IDs: make([]string, len(contexts)), Paths: make([][]int, len(contexts))}
	leaves := make([]cluster.NodeID, len(contexts))
	matches := make([]cluster.Match, len(contexts))
	found := make([][]int, len(contexts))
	var alone []int
	for i, c := range contexts {
		matches[i] = x.tree.Search(c)
		if matches[i].Node == cluster.None {
			alone = append(alone, i)
			continue
		}
		found[i] = x.tree.Path(matches[i].Node)
		st.Orders[i] = x.tree.Order(nil, c, matches[i])
		st.Matched++
	}
	for i := range contexts {
		if matches[i].Node == cluster.None {
			continue
		}
		// The place is looked up by path: where an earlier context of the batch has split the matched leaf, the
		// path leads to the new inner node.
		m := matches[i]
		m.Node = x.tree.At(found[i])
		leaves[i] = x.tree.Insert(st.Orders[i], m)
		st.Paths[i] = x.tree.Path(leaves[i])
	}
	if len(alone) > 0 {
		if err := x.merge(ctx, contexts, alone, &st, leaves); err != nil {
			return Step{}, err
		}
	}
	for i := range contexts {
		st.IDs[i] = x.assign(leaves[i])
	}
	st.Order, st.Groups = incremental(st.Paths, alone)
	return st, nil
}

func (x *Index) first(ctx context.Context, contexts [][]cluster.Doc) (Step, error) {
	b, err := x.tree.Build(ctx, contexts)
	if err != nil {
		return Step{}, fmt.Errorf("cluster %d contexts: %w", len(contexts), err)
	}
	x.live = true
	st := Step{Orders: b.Orders}
	for _, leaf := range b.Leaves {
		path := []int{}
		if leaf != cluster.None {
			path = x.tree.Path(leaf)
		}
		st.Paths = append(st.Paths, path)
		st.IDs = append(st.IDs, x.assign(leaf))
	}
	st.Order, st.Groups = cluster.Schedule(st.Paths)
	return st, nil
}

// merge clusters the contexts that matched nothing in an index of their own and moves the children of its root
// below ours.
func (x *Index) merge(ctx context.Context, contexts [][]cluster.Doc, alone []int, st *Step, leaves []cluster.NodeID) error {
	sub := cluster.NewTree(x.opt)
	sets := make([][]cluster.Doc, len(alone))
	for i, k := range alone {
		sets[i] = contexts[k]
	}
	b, err := sub.Build(ctx, sets)
	if err != nil {
		return fmt.Errorf("cluster %d contexts: %w", len(sets), err)
	}
	moved := x.tree.Graft(sub)
	for i, k := range alone {
		st.Orders[k] = b.Orders[i]
		leaf, ok := moved[b.Leaves[i]]
		if !ok {
			leaf = x.tree.Insert(b.Orders[i], cluster.Match{Node: cluster.None})
		}
		leaves[k] = leaf
		st.Paths[k] = x.tree.Path(leaf)
	}
	st.Merged = len(alone)
	return nil
}

func (x *Index) assign(leaf cluster.NodeID) string {
	x.next++
	id := fmt.Sprintf("r%d", x.next)
	if leaf != cluster.None {
		x.leaves[id] = leaf
	}
	return id
}

// Evict removes requests by ID and returns how many were known.
func (x *Index) Evict(ids ...string) (removed int) {
	for _, id := range ids {
		if leaf, ok := x.leaves[id]; ok {
			delete(x.leaves, id)
			x.tree.Remove(leaf)
			removed++
		}
	}
	return removed
}

// incremental is the execution order of an incremental batch: by first path element ascending, longer paths
// first, then in the order contexts were inserted. Groups come largest first.
func incremental(paths [][]int, alone []int) (order []int, groups [][]int) {
	inserted := make([]int, 0, len(paths))
	for i := range paths {
		if !slices.Contains(alone, i) {
			inserted = append(inserted, i)
		}
	}
	inserted = append(inserted, alone...)
	key := func(i int) int {
		if len(paths[i]) == 0 {
			return -1
		}
		return paths[i][0]
	}
	byKey := map[int]int{}
	for _, i := range inserted {
		g, ok := byKey[key(i)]
		if !ok {
			g = len(groups)
			byKey[key(i)] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	order = slices.Clone(inserted)
	slices.SortStableFunc(order, func(a, b int) int {
		if d := key(a) - key(b); d != 0 {
			return d
		}
		return len(paths[b]) - len(paths[a])
	})
	slices.SortStableFunc(groups, func(a, b []int) int { return len(b) - len(a) })
	return order, groups
}
