package offline

import (
	"cmp"
	"context"
	"slices"
)

// maxPostings bounds how many entries of posting lists are read to find one node's partner. Beyond it the longest
// lists are left out, and only the candidates of the others are compared in full.
const maxPostings = 1024

// checked bounds how many of these candidates are compared.
const checked = 32

// agglomerator joins the two nodes that share most, until none share anything. A node's set is what all sets below
// have in common. There is one heap entry a node, for its best partner; a node whose partner has gone looks again.
type agglomerator struct {
	weight []int64
	sets   [][]int32 // by node: its set, until it is joined
	inv    [][]int32 // by block: nodes that hold it; gone ones are dropped on the way
	share  []int64   // by node, scratch: zero between looks; below zero: the node is gone
	heap   []pair
	gone   []int32 // nodes dissolved into their parents
	near   []int32
	by     []int32 // scratch: blocks by length of list
	inSet  []uint32
	cur    uint32
}

type pair struct {
	w    int64
	a, b int32
}

// agglomerate builds a forest of the distinct sets, whose slices it takes over.
func agglomerate(ctx context.Context, weight []int64, sets [][]int32) (*forest, error) {
	f := newForest(weight, len(sets))
	g := &agglomerator{
		weight: weight, sets: make([][]int32, 1, 2*len(sets)+1), inv: make([][]int32, len(weight)),
		share: make([]int64, 2*len(sets)+1), inSet: make([]uint32, len(weight)),
	}
	g.sets = append(g.sets, sets...)
	count := make([]int32, len(weight))
	total := 0
	for _, s := range sets {
		slices.Sort(s)
		total += len(s)
		for _, d := range s {
			count[d]++
		}
	}
	arena := make([]int32, total)
	for d, n := range count {
		g.inv[d], arena = arena[:0:n], arena[n:]
	}
	for i := range sets {
		g.look(int32(i + 1)) // among those before: one side of a pair is enough
		g.add(int32(i + 1))
	}
	for n := 0; len(g.heap) > 0; n++ {
		if n&1023 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		p := g.pop()
		switch {
		case g.sets[p.a] == nil:
		case g.sets[p.b] == nil:
			g.look(p.a)
		default:
			g.join(f, p.a, p.b)
		}
	}
	for v := int32(1); int(v) < len(g.sets); v++ {
		switch {
		case g.sets[v] != nil:
			f.own(v, g.sets[v])
			f.link(v, root)
		case int(v) <= len(sets) && f.nodes[v].up == none:
			f.link(v, root) // an empty set
		}
	}
	for _, v := range g.gone {
		f.release(v)
	}
	return f, nil
}

// add enters a node in the posting lists.
func (g *agglomerator) add(x int32) {
	for _, d := range g.sets[x] {
		if len(g.inv[d]) == cap(g.inv[d]) {
			g.sweep(d)
		}
		g.inv[d] = append(g.inv[d], x)
	}
}

// sweep drops the nodes that are gone from a posting list.
func (g *agglomerator) sweep(d int32) int {
	l := g.inv[d]
	k := 0
	for _, y := range l {
		if g.share[y] >= 0 {
			l[k] = y
			k++
		}
	}
	g.inv[d] = l[:k]
	return k
}

// join makes a node of what a and b share; they become its children with the rest of their sets.
func (g *agglomerator) join(f *forest, a, b int32) {
	inA, inB, both := divide(g.sets[a], g.sets[b])
	if len(inA) > 0 || len(inB) == 0 && f.nodes[b].kids > f.nodes[a].kids {
		a, b, inA, inB = b, a, inB, inA
	}
	m := a
	if len(inA) == 0 && !f.leaf(a) { // a gives up nothing: b joins its children
		g.sets[a] = both
	} else {
		m = f.alloc()
		g.sets = append(g.sets, both)
		g.end(a)
		f.own(a, inA)
		f.link(a, m)
		g.add(m)
	}
	g.end(b)
	f.own(b, inB)
	if len(inB) > 0 || f.leaf(b) {
		f.link(b, m)
	} else {
		g.gone = append(g.gone, b)
		for c := f.nodes[b].kid; c != none; c = f.nodes[b].kid {
			f.unlink(c)
			f.link(c, m)
		}
	}
	g.look(m)
}

// end takes a node out that was joined.
func (g *agglomerator) end(x int32) { g.sets[x], g.share[x] = nil, -1 }

// divide returns what only a, only b and both hold. All are sorted; a and b are overwritten.
func divide(a, b []int32) (inA, inB, both []int32) {
	inA, inB = a[:0], b[:0]
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] < b[j]:
			inA = append(inA, a[i])
			i++
		case a[i] > b[j]:
			inB = append(inB, b[j])
			j++
		default:
			if both == nil {
				both = make([]int32, 0, min(len(a)-i, len(b)-j))
			}
			both = append(both, a[i])
			i++
			j++
		}
	}
	return append(inA, a[i:]...), append(inB, b[j:]...), both
}

// own sets the segment of a node that is not linked, without copying.
func (f *forest) own(v int32, seg []int32) {
	x := &f.nodes[v]
	x.seg = seg
	w := f.weigh(seg)
	f.cost += w - x.w
	x.w = w
}

// look finds the best partner of x among the nodes in the lists.
func (g *agglomerator) look(x int32) {
	set := g.sets[x]
	postings := 0
	for _, d := range set {
		postings += len(g.inv[d])
	}
	var rest int64 // weight of the blocks whose lists are left out
	if postings > maxPostings {
		set, rest = g.shortest(set)
	}
	g.near = g.near[:0]
	for _, d := range set {
		w := g.weight[d]
		l := g.inv[d]
		k := 0
		for _, y := range l {
			s := g.share[y]
			if s < 0 {
				continue
			}
			l[k] = y
			k++
			if y == x {
				continue
			}
			if s == 0 {
				g.near = append(g.near, y)
			}
			g.share[y] = s + w
		}
		g.inv[d] = l[:k]
	}
	best, most := none, int64(0)
	for _, y := range g.near {
		if s := g.share[y]; s > most || s == most && y < best {
			best, most = y, s
		}
	}
	if rest > 0 && best != none {
		best, most = g.compare(x, rest)
	}
	for _, y := range g.near {
		g.share[y] = 0
	}
	if best != none {
		g.push(pair{most, x, best})
	}
}

// shortest returns the blocks with the shortest lists, up to maxPostings entries, and the weight of the others.
func (g *agglomerator) shortest(set []int32) (some []int32, rest int64) {
	g.by = append(g.by[:0], set...)
	slices.SortFunc(g.by, func(a, b int32) int {
		return cmp.Or(cmp.Compare(len(g.inv[a]), len(g.inv[b])), cmp.Compare(a, b))
	})
	n, left := 0, maxPostings
	for n < len(g.by) {
		d := g.by[n]
		if left -= g.sweep(d); left < 0 && n > 0 {
			break
		}
		n++
	}
	for _, d := range g.by[n:] {
		rest += g.weight[d]
	}
	return g.by[:n], rest
}

// compare counts the full share of the best candidates in near.
func (g *agglomerator) compare(x int32, rest int64) (best int32, most int64) {
	g.cur++
	for _, d := range g.sets[x] {
		g.inSet[d] = g.cur
	}
	floor := int64(0)
	if len(g.near) > checked {
		for _, y := range g.near {
			floor = max(floor, g.share[y])
		}
		floor -= rest
	}
	best = none
	tried := 0
	for _, y := range slices.Backward(g.near) {
		if s := g.share[y]; s < floor || s+rest <= most {
			continue
		}
		s := int64(0)
		for _, d := range g.sets[y] {
			if g.inSet[d] == g.cur {
				s += g.weight[d]
			}
		}
		if s > most || s == most && y < best {
			best, most = y, s
		}
		if tried++; tried >= checked*2 {
			break
		}
	}
	return best, most
}

func (g *agglomerator) push(x pair) {
	h := append(g.heap, x)
	i := len(h) - 1
	for i > 0 && h[(i-1)/2].w < h[i].w {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
		i = (i - 1) / 2
	}
	g.heap = h
}

func (g *agglomerator) pop() pair {
	h := g.heap
	x, n := h[0], len(h)-1
	h[0] = h[n]
	h = h[:n]
	g.heap = h
	for i := 0; ; {
		l := 2*i + 1
		if l >= n {
			return x
		}
		if l+1 < n && h[l+1].w > h[l].w {
			l++
		}
		if h[i].w >= h[l].w {
			return x
		}
		h[i], h[l] = h[l], h[i]
		i = l
	}
}
