package paper

import (
	"context"
	"encoding/binary"
	"slices"
)

// Batch is the outcome of [Tree.Build], indexed like its contexts.
type Batch struct {
	Orders [][]Doc  // each context reordered
	Leaves []NodeID // None for an empty context
	Merges []Merge
}

// draft is a node while the clustering is turned into a tree; its index is SciPy's cluster number.
type draft struct {
	docs   []Doc
	kids   []int
	parent int
	used   bool
}

// Build is Alg. 4: it clusters the contexts, turns the merges into prefix nodes, orders every context top down,
// and hangs the result below the tree's root. Docs of a context must be distinct. Time O(n²), memory
// 12·n²/2 bytes while it runs. On a cancelled ctx the tree is unchanged and ctx's error is returned.
func (t *Tree) Build(ctx context.Context, contexts [][]Doc) (Batch, error) {
	m, err := distances(ctx, contexts, t.opt.Alpha)
	if err != nil {
		return Batch{}, err
	}
	merges, err := link(ctx, m, t.opt.Linkage)
	if err != nil {
		return Batch{}, err
	}
	b := builder{t: t, n: len(contexts)}
	b.leaves(contexts)
	for i, z := range merges {
		b.merge(b.n+i, z)
	}
	b.dropEmpty()
	return b.graft(contexts, merges), nil
}

type builder struct {
	t      *Tree
	n      int
	nodes  []draft
	alias  []int          // cluster number → the node that stands for it
	same   map[string]int // content → node
	shared []int32        // leaf → contexts on it
}

func (b *builder) leaves(contexts [][]Doc) {
	size := max(2*b.n-1, 0)
	b.nodes, b.alias, b.shared = make([]draft, size), make([]int, size), make([]int32, size)
	b.same = map[string]int{}
	for i, c := range contexts {
		b.nodes[i].parent = -1
		set := slices.Clone(c)
		slices.Sort(set)
		key := contentKey(set)
		if j, ok := b.same[key]; ok { // Alg. 4, line 7: redirect
			b.alias[i] = j
			b.shared[j]++
			continue
		}
		b.same[key] = i
		b.alias[i], b.shared[i] = i, 1
		b.nodes[i] = draft{docs: set, parent: -1, used: true}
	}
	if !b.t.opt.Recorded {
		clear(b.same) // a prefix node never stands for a context, even if it has the same docs
	}
}

func (b *builder) merge(id int, z Merge) {
	x, y := b.alias[z.A], b.alias[z.B]
	b.nodes[id].parent = -1
	if x == y {
		b.alias[id] = x
		return
	}
	common := intersect(b.nodes[x].docs, b.nodes[y].docs)
	key := contentKey(common)
	if j, ok := b.same[key]; ok && b.t.opt.Recorded && len(common) > 0 && j != x && j != y && len(b.nodes[j].kids) > 0 {
		b.alias[id] = j
		for _, k := range []int{x, y} {
			b.nodes[k].parent = j
			if !slices.Contains(b.nodes[j].kids, k) {
				b.nodes[j].kids = append(b.nodes[j].kids, k)
			}
		}
		return
	}
	b.alias[id] = id
	b.nodes[id] = draft{docs: common, kids: []int{x, y}, parent: -1, used: true}
	if len(common) > 0 {
		b.same[key] = id
	}
	b.nodes[x].parent, b.nodes[y].parent = id, id
}

// dropEmpty removes nodes that share nothing and lifts their children to the grandparent.
func (b *builder) dropEmpty() {
	for id := len(b.nodes) - 1; id >= 0; id-- {
		n := &b.nodes[id]
		if !n.used || len(n.docs) > 0 {
			continue
		}
		if p := n.parent; p >= 0 {
			b.nodes[p].kids = slices.DeleteFunc(b.nodes[p].kids, func(k int) bool { return k == id })
			b.nodes[p].kids = append(b.nodes[p].kids, n.kids...)
		}
		for _, k := range n.kids {
			b.nodes[k].parent = n.parent
		}
		n.used = false
	}
}

// graft hangs the drafts below the tree's root, top down: each node is its parent's docs followed by its own
// other docs (Alg. 4, phase 3). Leaves keep retrieval order for those, inner nodes sorted order.
func (b *builder) graft(contexts [][]Doc, merges []Merge) Batch {
	t := b.t
	first := t.root
	out := Batch{Orders: make([][]Doc, b.n), Leaves: make([]NodeID, b.n), Merges: merges}
	ids := make([]NodeID, len(b.nodes))
	for i := range ids {
		ids[i] = None
	}
	var top []int
	for i := range b.nodes {
		if b.nodes[i].used && b.nodes[i].parent < 0 {
			top = append(top, i)
		}
	}
	if t.opt.Recorded && b.n > 1 && len(top) == 1 && len(t.nodes[first].kids) == 0 && len(t.nodes[first].docs) == 0 {
		// The published index has no root above a single top cluster.
		b.place(first, top[0], contexts)
		ids[top[0]] = first
		top = b.nodes[top[0]].kids
	}
	b.hang(first, top, contexts, ids)
	for i := range contexts { // none is left out, whatever shared content did to the links
		if k := b.alias[i]; ids[k] == None && len(b.nodes[k].docs) > 0 {
			b.nodes[k].parent = -1
			b.hang(first, []int{k}, contexts, ids)
		}
	}
	for i := range contexts {
		out.Leaves[i] = ids[b.alias[i]]
		out.Orders[i] = slices.Clone(contexts[i])
		if leaf := out.Leaves[i]; leaf != None {
			out.Orders[i] = t.Order(nil, contexts[i], Match{Node: leaf})
		}
	}
	return out
}

func (b *builder) hang(parent NodeID, kids []int, contexts [][]Doc, ids []NodeID) {
	t := b.t
	if !t.opt.Recorded { // prefix nodes before contexts, as Fig. 5 numbers them
		kids = slices.Clone(kids)
		slices.SortStableFunc(kids, func(x, y int) int { return btoi(len(b.nodes[x].kids) == 0) - btoi(len(b.nodes[y].kids) == 0) })
	}
	for _, k := range kids {
		if ids[k] != None {
			continue // a node of shared content that was reached another way
		}
		if t.opt.Recorded && b.above(k, ids) != parent {
			continue // the published index lists it here too, but counts it to the node that took it last
		}
		id := t.add(nil, parent, false)
		ids[k] = id
		t.nodes[id].parent = parent
		b.place(id, k, contexts)
		t.adopt(parent, id)
		b.hang(id, b.nodes[k].kids, contexts, ids)
		if !t.nodes[id].leaf && len(t.nodes[id].kids) == 0 {
			t.removeNode(id) // others took all that was below it
			ids[k] = None
		}
	}
}

// above returns the node that the draft hangs below.
func (b *builder) above(k int, ids []NodeID) NodeID {
	if p := b.nodes[k].parent; p >= 0 {
		return ids[p]
	}
	return b.t.root
}

func (b *builder) place(id NodeID, k int, contexts [][]Doc) {
	t := b.t
	own := b.nodes[k].docs
	leaf := len(b.nodes[k].kids) == 0
	if leaf {
		own = contexts[k]
	} else {
		own = slices.Clone(own)
		t.byLess(own)
	}
	var docs []Doc
	if p := t.nodes[id].parent; p != None {
		docs = append(docs, t.nodes[p].docs...)
	}
	t.pos.load(docs)
	for _, d := range own {
		if _, above := t.pos.find(d); !above {
			docs = append(docs, d)
		}
	}
	t.opt.Hold(docs, 1)
	n := &t.nodes[id]
	n.docs, n.leaf, n.uses = docs, leaf, b.shared[k]
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// intersect returns the common docs of two ascending lists.
func intersect(a, b []Doc) []Doc {
	var out []Doc
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] < b[j]:
			i++
		case a[i] > b[j]:
			j++
		default:
			out = append(out, a[i])
			i, j = i+1, j+1
		}
	}
	return out
}

func contentKey(sorted []Doc) string {
	key := make([]byte, 0, 4*len(sorted))
	for _, d := range sorted {
		key = binary.LittleEndian.AppendUint32(key, uint32(d))
	}
	return string(key)
}
