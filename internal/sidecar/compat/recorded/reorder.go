package recorded

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/ragpilot/ragpilot/internal/paper"
)

// Lock guards an index that several goroutines use. [Index.Reorder] holds it only where it reads or changes the index,
// and calls Pause between contexts: others may be let in there.
type Lock interface {
	sync.Locker
	Pause()
}

// noLock is the lock of an index of one goroutine.
type noLock struct{}

func (noLock) Lock()   {}
func (noLock) Unlock() {}
func (noLock) Pause()  {}

// Job is a batch for a live index. The contexts' docs must be distinct within a context.
type Job struct {
	Contexts [][]paper.Doc
	IDs      []string // of the requests, in input order; all different and unknown to the index
	Tokens   int      // of each context
	// Name is the index's number of a doc, so that the contexts can be numbered densely; nil: the same. It is called
	// with and without the lock, and its answers must hold until Reorder returns.
	Name func(paper.Doc) paper.Doc
	// Options are those of an index that begins with this batch; Hold stays the index's own.
	Options paper.Options
	// Cluster is [Cluster] or waits for its turn first; nil: Cluster.
	Cluster func(context.Context, paper.Options, [][]paper.Doc) (*Clustering, error)
}

// Step is the answer to one batch. Orders, IDs and Nodes are in input order, Order is the execution order. Orders are in
// the job's numbers.
type Step struct {
	Orders          [][]paper.Doc
	Order           []int
	Groups          [][]int
	IDs             []string
	Nodes           []int // the number of each context's leaf, -1: none, as the context is empty
	Matched, Merged int
	Paths           [][]int
	Initial         bool
	Stats           Stats // after it
}

// Reorder orders a batch: by clustering if the index is empty, otherwise by matching each context against it and
// clustering those that match nothing. Clustering is done without the lock, and before the index is changed: if ctx
// ends while it lasts, the index is as it was. What others do to the index meanwhile is taken into account.
func (x *Index) Reorder(ctx context.Context, lock Lock, job Job) (Step, error) {
	if job.Name == nil {
		job.Name = func(d paper.Doc) paper.Doc { return d }
	}
	if job.Cluster == nil {
		job.Cluster = Cluster
	}
	job.Options.Hold = nil // a clustering has no owner until it is taken over
	lock.Lock()
	live := x.live
	lock.Unlock()
	if !live {
		c, err := job.Cluster(ctx, job.Options, job.Contexts)
		if err != nil {
			return Step{}, err
		}
		c.tree.Rename(job.Name)
		if st, ok := x.begin(lock, job, c); ok {
			return st, nil
		}
	}
	return x.extend(ctx, lock, job)
}

// begin makes a clustering the index, unless another batch was first.
func (x *Index) begin(lock Lock, job Job, c *Clustering) (Step, bool) {
	lock.Lock()
	defer lock.Unlock()
	if x.live {
		return Step{}, false
	}
	x.live = true
	hold := x.opt.Hold
	x.opt = c.opt
	x.opt.Hold = hold
	st := Step{
		Initial: true, Orders: c.Orders, Order: c.Order, Groups: c.Groups, Paths: c.paths, IDs: job.IDs, Nodes: make([]int, len(c.leaves)),
	}
	leaves := c.leaves
	if root := c.tree.Root(); c.tree.Leaf(root) { // all contexts but empty ones are equal; a root could never be matched
		x.tree = paper.NewTree(x.opt)
		moved := map[paper.NodeID]paper.NodeID{paper.None: paper.None}
		x.tree.GraftChild(c.tree, root, func(from, to paper.NodeID) { moved[from] = to })
		for i, n := range leaves {
			leaves[i] = moved[n]
		}
	} else {
		x.tree = c.tree
		x.tree.SetHold(hold)
	}
	// Leaves have the number of their first context, inner nodes follow.
	first := map[paper.NodeID]int{}
	x.serial += len(leaves)
	for i, leaf := range leaves {
		st.Nodes[i] = -1
		if leaf != paper.None {
			if _, again := first[leaf]; !again {
				first[leaf] = x.serial - len(leaves) + i
				*x.at(leaf) = node{number: first[leaf], tokens: job.Tokens, extra: job.Tokens}
				x.stats.Tokens += job.Tokens
			}
			st.Nodes[i] = first[leaf]
		}
		x.remember(job.IDs[i], leaf, len(job.Contexts[i]))
	}
	x.numberInner(x.tree.Root())
	x.trim(lock)
	st.Stats = x.Stats()
	return st, true
}

func (x *Index) numberInner(n paper.NodeID) {
	for _, k := range x.tree.Children(n) {
		x.numberInner(k)
	}
	if !x.tree.Leaf(n) {
		x.at(n).number = x.number()
	}
}

// match is what a context was found to share with the index, and when.
type match struct {
	paper.Match
	path  []int
	order []paper.Doc // in the index's numbers
	cuts  int
}

func (x *Index) match(named []paper.Doc) match {
	m := match{Match: x.search(named), cuts: x.cuts}
	if m.Node != paper.None {
		m.path = x.tree.Path(m.Node)
		m.order = x.tree.Order(nil, named, m.Match)
	}
	return m
}

// extend is Reorder for an index that is live.
func (x *Index) extend(ctx context.Context, lock Lock, job Job) (Step, error) {
	n := len(job.Contexts)
	st := Step{Orders: make([][]paper.Doc, n), IDs: job.IDs, Nodes: make([]int, n), Paths: make([][]int, n)}
	named := make([][]paper.Doc, n)
	for i, c := range job.Contexts {
		named[i] = renamed(c, job.Name)
	}
	matches, opt := x.matchAll(lock, named)
	var alone []int
	for i := range matches {
		if matches[i].Node == paper.None {
			alone = append(alone, i)
		}
	}
	st.Merged, st.Matched = len(alone), n-len(alone)
	sets := make([][]paper.Doc, len(alone))
	for i, k := range alone {
		sets[i] = job.Contexts[k]
	}
	var c *Clustering
	if len(alone) > 1 {
		var err error
		if c, err = job.Cluster(ctx, opt, sets); err != nil {
			return Step{}, err
		}
		c.tree.Rename(job.Name)
	}
	if err := ctx.Err(); err != nil {
		return Step{}, err
	}
	commit{x, lock, job, &st}.run(named, matches, alone, c)
	for i, m := range matches {
		if m.Node != paper.None {
			st.Orders[i] = unname(job.Contexts[i], named[i], m.order)
		}
	}
	for i, k := range alone {
		st.Orders[k] = slices.Clone(sets[i])
		if c != nil {
			st.Orders[k] = c.Orders[i]
		}
	}
	st.Order, st.Groups = incremental(st.Paths, alone)
	return st, nil
}

func (x *Index) matchAll(lock Lock, named [][]paper.Doc) ([]match, paper.Options) {
	lock.Lock()
	defer lock.Unlock()
	out := make([]match, len(named))
	for i, c := range named {
		out[i] = x.match(c)
		lock.Pause()
	}
	opt := x.opt
	opt.Hold = nil
	return out, opt
}

// commit enters the contexts of a batch: those that matched first, then those that are alone, as nothing matched them.
//
//	context                                             goes
//	matched                                             to the place, found again by its path: an earlier context of the batch
//	                                                    may have split the leaf there, and the path leads to the new inner node
//	matched, but something was removed since            to the place that it matches now; below the root if there is none
//	alone, with a leaf in the clustering                with that leaf, which moves below our root
//	alone otherwise                                     to a leaf of its own below the root
//
// Of the tokens of a prompt, a leaf counts what is beyond the node above: max(tokens − tokens above, 0).
type commit struct {
	x    *Index
	lock Lock
	job  Job
	st   *Step
}

func (c commit) matched(i int, m *match, named []paper.Doc) {
	x := c.x
	if m.cuts != x.cuts {
		*m = x.match(named)
		x.stats.Searches--
	}
	if m.Node == paper.None {
		m.order = named
		m.Node = x.tree.Root() // it has its order: it is not alone
	}
	at := paper.Match{Node: paper.None, Prefix: m.Prefix}
	if len(m.path) > 0 {
		at.Node = x.tree.At(m.path)
	}
	c.insert(i, m.order, at)
}

// grafted enters context i where the leaf of a clustering is now.
func (c commit) grafted(i int, leaf paper.NodeID) {
	c.x.remember(c.job.IDs[i], leaf, len(c.job.Contexts[i]))
	c.st.Paths[i], c.st.Nodes[i] = c.x.tree.Path(leaf), c.x.at(leaf).number
	c.lock.Pause()
}

func (c commit) insert(i int, order []paper.Doc, at paper.Match) {
	p := c.x.insert(c.job.IDs[i], order, at, c.job.Tokens)
	c.st.Paths[i], c.st.Nodes[i] = p.Path, p.Node
	c.lock.Pause()
}

// run enters all contexts. clustered is the order of those that are alone, nil if there are fewer than two.
func (c commit) run(named [][]paper.Doc, matches []match, alone []int, clustered *Clustering) {
	x := c.x
	c.lock.Lock()
	defer c.lock.Unlock()
	x.commits++
	defer func() { x.commits-- }()
	x.stats.Insertions += len(named)
	for i := range matches {
		if matches[i].Node != paper.None {
			c.matched(i, &matches[i], named[i])
		}
	}
	moved := x.merge(c.lock, clustered, c.job.Tokens)
	for n, i := range alone {
		order := named[i]
		if clustered != nil {
			if leaf, ok := moved[clustered.leaves[n]]; ok {
				c.grafted(i, leaf)
				continue
			}
			order = renamed(clustered.Orders[n], c.job.Name)
		}
		c.insert(i, order, paper.Match{Node: paper.None})
	}
	x.trim(c.lock)
	c.st.Stats = x.Stats()
}

// merge moves the children of a clustering's root below ours and returns where its nodes are now. Their contexts are not
// remembered yet, so they cannot be removed meanwhile.
func (x *Index) merge(lock Lock, c *Clustering, tokens int) map[paper.NodeID]paper.NodeID {
	if c == nil {
		return nil
	}
	moved := map[paper.NodeID]paper.NodeID{}
	for _, k := range c.tree.Children(c.tree.Root()) {
		x.tree.GraftChild(c.tree, k, func(from, to paper.NodeID) {
			moved[from] = to
			n := node{number: x.number()}
			if x.tree.Leaf(to) {
				n.tokens, n.extra = tokens, max(tokens-x.at(x.tree.Root()).tokens, 0)
				x.stats.Tokens += n.extra
			}
			*x.at(to) = n
		})
		lock.Pause()
	}
	return moved
}

func renamed(c []paper.Doc, name func(paper.Doc) paper.Doc) []paper.Doc {
	out := make([]paper.Doc, len(c))
	for i, d := range c {
		out[i] = name(d)
	}
	return out
}

// unname turns an order of a context in the index's numbers into the job's: c[i] is called named[i].
func unname(c, named, order []paper.Doc) []paper.Doc {
	of := make(map[paper.Doc]paper.Doc, len(c))
	for i, d := range named {
		of[d] = c[i]
	}
	out := make([]paper.Doc, len(order))
	for i, d := range order {
		out[i] = of[d]
	}
	return out
}

// incremental is the execution order of an incremental batch: by first path element ascending, longer paths
// first, then in the order contexts were inserted. Groups come largest first.
func incremental(paths [][]int, alone []int) (order []int, groups [][]int) {
	order = make([]int, 0, len(paths))
	last := make([]bool, len(paths))
	for _, i := range alone {
		last[i] = true
	}
	for i := range paths {
		if !last[i] {
			order = append(order, i)
		}
	}
	order = append(order, alone...)
	key := func(i int) int {
		if len(paths[i]) == 0 {
			return -1
		}
		return paths[i][0]
	}
	byKey := map[int]int{}
	for _, i := range order {
		g, ok := byKey[key(i)]
		if !ok {
			g = len(groups)
			byKey[key(i)] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(key(a), key(b)), cmp.Compare(len(paths[b]), len(paths[a])))
	})
	slices.SortStableFunc(groups, func(a, b []int) int { return len(b) - len(a) })
	return order, groups
}
