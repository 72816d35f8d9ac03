package offline

import (
	"cmp"
	"math"
	"slices"
)

// orderer writes the orders of the requests and their depth-first schedule.
type orderer struct {
	*problem
	f      *forest
	of     [][]int32 // the sets as given
	orders [][]int32 // to be written
	where  []int32   // scratch by block ID

	begin    []int32 // by leaf: its first member
	members  []int32 // requests by leaf
	first    []int32 // by node: the first request below
	base     []int32 // by node: its first slot
	rank     []int64 // by slot, one a block of a segment: sum of the block's ranks below
	slot     []int32 // by block: its slot on the path being walked
	prefix   []int32 // blocks of the path
	kids     []int32 // children of the path's nodes
	schedule []int
}

// order returns the orders and the schedule. In an order, the blocks of a segment stand by their mean rank over the requests that
// share it; blocks of no segment follow as the first request of the same set retrieved them.
func (p *problem) order(f *forest, sets [][]int32, where []int32) (orders [][]int32, schedule []int) {
	o := orderer{
		problem: p, f: f, of: sets, orders: make([][]int32, len(sets)), where: where,
		begin: make([]int32, len(p.sets)+1), members: make([]int32, len(sets)),
		first: make([]int32, len(f.nodes)), base: make([]int32, len(f.nodes)), slot: make([]int32, len(p.block)), schedule: make([]int, 0,
			len(sets)),
	}
	for _, l := range p.leafOf {
		o.begin[l+1]++
	}
	for l := range p.sets {
		o.begin[l+1] += o.begin[l]
	}
	fill := slices.Clone(o.begin)
	for i, l := range p.leafOf {
		o.members[fill[l]] = int32(i)
		fill[l]++
	}
	slots := 0
	for v := range f.nodes {
		o.base[v] = int32(slots)
		slots += len(f.nodes[v].seg)
	}
	o.rank = make([]int64, slots)
	o.count(root)
	o.emit(root)
	return o.orders, o.schedule
}

func (o *orderer) leafMembers(v int32) []int32 {
	if v == root || int(v) > len(o.sets) {
		return nil
	}
	return o.members[o.begin[v-1]:o.begin[v]]
}

// count sums the ranks below v and then sorts v's segment by them.
func (o *orderer) count(v int32) {
	o.first[v] = math.MaxInt32
	seg := o.f.nodes[v].seg
	base := o.base[v]
	for i, d := range seg {
		o.slot[d] = base + int32(i)
	}
	for _, m := range o.leafMembers(v) {
		o.first[v] = min(o.first[v], m)
		for t, d := range o.of[m] {
			if n := o.number[d]; n < 0 {
				o.rank[o.slot[-n-1]] += int64(t)
			}
		}
	}
	for c := o.f.nodes[v].kid; c != none; c = o.f.nodes[c].next {
		o.count(c)
		o.first[v] = min(o.first[v], o.first[c])
	}
	slices.SortFunc(seg, func(a, b int32) int {
		return cmp.Or(cmp.Compare(o.rank[o.slot[a]], o.rank[o.slot[b]]), cmp.Compare(o.block[a], o.block[b]))
	})
}

// emit writes the orders below v. Of two branches, the one with the first request goes first.
func (o *orderer) emit(v int32) {
	depth := len(o.prefix)
	for _, d := range o.f.nodes[v].seg {
		o.prefix = append(o.prefix, o.block[d])
	}
	mem := o.leafMembers(v)
	slices.SortFunc(mem, func(a, b int32) int { return cmp.Or(cmp.Compare(o.rep[a], o.rep[b]), cmp.Compare(a, b)) })
	for _, m := range mem {
		o.write(m)
	}
	mark := len(o.kids)
	for c := o.f.nodes[v].kid; c != none; c = o.f.nodes[c].next {
		o.kids = append(o.kids, c)
	}
	kids := o.kids[mark:]
	slices.SortFunc(kids, func(a, b int32) int { return cmp.Compare(o.first[a], o.first[b]) })
	for _, c := range kids {
		o.emit(c)
	}
	o.kids = o.kids[:mark]
	o.prefix = o.prefix[:depth]
}

func (o *orderer) write(m int32) {
	set := o.of[m]
	for t, d := range set {
		o.where[d] = int32(t)
	}
	order := make([]int32, 0, len(set))
	for _, d := range o.prefix {
		order = append(order, o.where[d])
	}
	for _, d := range o.of[o.rep[m]] {
		if o.number[d] >= 0 {
			order = append(order, o.where[d])
		}
	}
	o.orders[m] = order
	o.schedule = append(o.schedule, int(m))
}

// arrange makes requests that share a prefix adjacent at every depth, which the schedule is already but for blocks
// that the search did not look at, and returns the tokens shared. run is called for each run of requests that share
// their first block.
func arrange(sets, orders [][]int32, schedule []int, weight []int32, run func(n int)) (saved int64) {
	a := arranger{sets: sets, orders: orders, weight: weight, last: make([]uint32, len(weight))}
	a.level(schedule, 0, run)
	return a.saved
}

type arranger struct {
	sets, orders [][]int32
	weight       []int32
	last         []uint32 // by block: the latest level that met it
	levels       uint32
	saved        int64
}

func (a *arranger) block(r, depth int) int32 {
	if depth >= len(a.orders[r]) {
		return none
	}
	return a.sets[r][a.orders[r][depth]]
}

// level works on requests that share their first depth blocks.
func (a *arranger) level(reqs []int, depth int, run func(n int)) {
	if len(reqs) == 1 && run == nil {
		return
	}
	a.levels++
	if a.levels == 0 {
		clear(a.last)
		a.levels = 1
	}
	level, before, again := a.levels, none, false
	for i, r := range reqs {
		d := a.block(r, depth)
		if i > 0 && d == before {
			continue
		}
		before = d
		if d == none {
			again = again || i > 0 // a finished request goes first
			continue
		}
		again = again || a.last[d] == level
		a.last[d] = level
	}
	if again {
		a.gather(reqs, depth)
	}
	for i := 0; i < len(reqs); {
		d := a.block(reqs[i], depth)
		j := i + 1
		for d != none && j < len(reqs) && a.block(reqs[j], depth) == d {
			j++
		}
		if d != none {
			a.saved += int64(j-i-1) * int64(a.weight[d])
			a.level(reqs[i:j], depth+1, nil)
		}
		if run != nil {
			run(j - i)
		}
		i = j
	}
}

// gather sorts requests by their block at depth, in order of its first appearance.
func (a *arranger) gather(reqs []int, depth int) {
	first := map[int32]int{none: -1}
	for i, r := range reqs {
		if d := a.block(r, depth); d != none {
			if _, ok := first[d]; !ok {
				first[d] = i
			}
		}
	}
	slices.SortStableFunc(reqs, func(x, y int) int { return cmp.Compare(first[a.block(x, depth)], first[a.block(y, depth)]) })
}
