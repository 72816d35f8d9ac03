package bounds

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
)

// Groups returns an upper bound that also looks at what three and four requests have in common. It is never above
// SpanningTree, and may be above or below Nearest.
//
// Plans form binary trees whose leaves are requests: an inner node stands for two groups that part, and saves at most
// what all requests below it have in common. So a node over two requests is worth at most their pair, over three at
// most the best triple around a pair of them, over more at most the best quadruple around a pair. One pair for each
// node can be chosen such that they form a spanning tree. With p, t, q the values of a pair, its best triple and its
// best quadruple:
//
//   - nodes over two requests are a matching, so what their pairs exceed triples by is at most half of the sum over
//     all requests of their largest p-t;
//   - nodes over two or three form components of at most three requests with two edges, so what their triples exceed
//     quadruples by is at most two thirds of the sum over all requests of their largest t-q.
//
// The smallest of the spanning trees by p, by t plus the first excess, and by q plus both is returned. Time and memory
// grow with the number of pairs of requests that have something in common, time also with the size of their
// neighbourhoods: this is for some thousands of requests.
func (p *Problem) Groups(ctx context.Context) (int, error) {
	g := groups{Problem: p, postings: p.postings(), at: make([]int32, len(p.sets))}
	d2, d3 := make([]int32, len(p.sets)), make([]int32, len(p.sets))
	var pairs []pair
	for i := range p.sets {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		g.look(i)
		for x := range g.near {
			j := g.near[x].request
			if int(j) > i {
				continue
			}
			t, q := g.best(x)
			w := g.near[x].weight
			pairs = append(pairs, pair{[2]int32{int32(i), j}, [3]int32{w, t, q}})
			for _, end := range [2]int32{int32(i), j} {
				d2[end], d3[end] = max(d2[end], w-t), max(d3[end], t-q)
			}
		}
	}
	s2, s3 := 0, 0
	for i := range d2 {
		s2 += int(d2[i])
		s3 += int(d3[i])
	}
	s := span{pairs: pairs, parent: make([]int32, len(p.sets))}
	return min(s.sum(0), s.sum(1)+s2/2, s.sum(2)+s2/2+s3*2/3), nil
}

// groups compares one request with its neighbours.
type groups struct {
	*Problem
	postings
	at    []int32 // of each request: 1 + its index in near; else 0
	set   []int32 // blocks of the request
	near  []neighbour
	cut   []neighbour
	words int
	and   mask
}

// neighbour is a request that has blocks in common with the one that is looked at.
type neighbour struct {
	request int32
	weight  int32
	mask    mask
}

// mask says which blocks of the request are meant, by their place in it.
type mask []uint64

// look collects the neighbours of request i.
func (g *groups) look(i int) {
	g.set = g.sets[i]
	g.words = (len(g.set) + 63) / 64
	g.and = make(mask, g.words)
	g.near = g.near[:0]
	for place, b := range g.set {
		for _, j := range g.of(b) {
			if int(j) == i {
				continue
			}
			if g.at[j] == 0 {
				g.near = append(g.near, neighbour{request: j, mask: make(mask, g.words)})
				g.at[j] = int32(len(g.near))
			}
			n := &g.near[g.at[j]-1]
			n.weight += g.weight[b]
			n.mask[place/64] |= 1 << (place % 64)
		}
	}
	for _, n := range g.near {
		g.at[n.request] = 0
	}
	slices.SortFunc(g.near, func(a, b neighbour) int { return cmp.Compare(b.weight, a.weight) })
}

func (g *groups) weigh(m mask) int32 {
	var sum int32
	for k, v := range m {
		for ; v != 0; v &= v - 1 {
			sum += g.weight[g.set[k*64+bits.TrailingZeros64(v)]]
		}
	}
	return sum
}

// first is how many of the heaviest neighbours are compared to find out which of the others matter.
const first = 24

// best returns the largest weights that the request, its neighbour x and one or two others have in common.
func (g *groups) best(x int) (triple, quadruple int32) {
	g.cut = g.cut[:0]
	y := 0
	for ; y < len(g.near) && y < first; y++ {
		g.intersect(x, y, 0)
	}
	quadruple = g.heaviest(0)
	for ; y < len(g.near) && g.near[y].weight > quadruple; y++ {
		g.intersect(x, y, quadruple)
	}
	// A triple no heavier than the quadruple is a part of it.
	for _, c := range g.cut {
		triple = max(triple, c.weight)
	}
	return triple, g.heaviest(quadruple)
}

// intersect adds what neighbours x and y both share to cut if it weighs more than least.
func (g *groups) intersect(x, y int, least int32) {
	if x == y {
		return
	}
	if len(g.cut) == cap(g.cut) {
		g.cut = append(g.cut, neighbour{})
	} else {
		g.cut = g.cut[:len(g.cut)+1]
	}
	c := &g.cut[len(g.cut)-1]
	if cap(c.mask) < g.words {
		c.mask = make(mask, g.words)
	}
	c.mask = c.mask[:g.words]
	for k := range c.mask {
		c.mask[k] = g.near[x].mask[k] & g.near[y].mask[k]
	}
	if c.weight = g.weigh(c.mask); c.weight <= least {
		g.cut = g.cut[:len(g.cut)-1]
	}
}

// heaviest returns the largest weight that two of cut have in common, or least if none has more.
func (g *groups) heaviest(least int32) int32 {
	slices.SortFunc(g.cut, func(a, b neighbour) int { return cmp.Compare(b.weight, a.weight) })
	for y := range g.cut {
		if g.cut[y].weight <= least {
			break
		}
		for z := y + 1; z < len(g.cut) && g.cut[z].weight > least; z++ {
			for k := range g.and {
				g.and[k] = g.cut[y].mask[k] & g.cut[z].mask[k]
			}
			least = max(least, g.weigh(g.and))
		}
	}
	return least
}

// pair is an edge with its values as a pair, in the best triple and in the best quadruple.
type pair struct {
	ends  [2]int32
	value [3]int32
}

// span finds maximum spanning trees (Kruskal).
type span struct {
	pairs  []pair
	parent []int32
}

func (s *span) sum(by int) int {
	slices.SortFunc(s.pairs, func(a, b pair) int { return cmp.Compare(b.value[by], a.value[by]) })
	for i := range s.parent {
		s.parent[i] = int32(i)
	}
	sum := 0
	for _, e := range s.pairs {
		if a, b := s.root(e.ends[0]), s.root(e.ends[1]); a != b {
			s.parent[a] = b
			sum += int(e.value[by])
		}
	}
	return sum
}

func (s *span) root(i int32) int32 {
	for s.parent[i] != i {
		s.parent[i] = s.parent[s.parent[i]]
		i = s.parent[i]
	}
	return i
}
