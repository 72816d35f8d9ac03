package offline

import (
	"fmt"
	"slices"
)

// problem is what is left of requests for the search: the distinct sets of blocks that could be shared, in
// blocks numbered from 0.
type problem struct {
	weight []int64   // by block
	block  []int32   // by block: its ID
	sets   [][]int32 // by leaf, without repeats
	leafOf []int32   // by request
	rep    []int32   // by request: the first of the same set
	number []int32   // by block ID: -1 less the block's number, or else not negative
	firsts []int32   // the requests that are their own rep
}

// reduce drops blocks that only requests of one and the same set hold, or that weigh nothing, and then repeated sets.
// number is scratch by block ID, zero before and after clear.
func reduce(sets [][]int32, weight, number []int32) *problem {
	p := &problem{leafOf: make([]int32, len(sets)), number: number, rep: make([]int32, len(sets))}
	distinct(sets, func(i, first int) {
		p.rep[i] = int32(first)
		if i == first {
			p.firsts = append(p.firsts, int32(i))
			for _, d := range sets[i] {
				number[d]++
			}
		}
	})
	total := 0
	for _, i := range p.firsts {
		for _, d := range sets[i] {
			if number[d] > 1 && weight[d] > 0 {
				number[d] = -int32(len(p.block)) - 1
				p.block = append(p.block, d)
				p.weight = append(p.weight, int64(weight[d]))
			}
			if number[d] < 0 {
				total++
			}
		}
	}
	arena := make([]int32, 0, total)
	rest := make([][]int32, len(p.firsts))
	for n, i := range p.firsts {
		k := len(arena)
		arena = p.translate(arena, sets[i])
		rest[n] = arena[k:len(arena):len(arena)]
	}
	distinct(rest, func(n, first int) {
		if n == first {
			p.leafOf[p.firsts[n]] = int32(len(p.sets))
			p.sets = append(p.sets, rest[n])
			return
		}
		p.leafOf[p.firsts[n]] = p.leafOf[p.firsts[first]]
	})
	for i, r := range p.rep {
		p.leafOf[i] = p.leafOf[r]
	}
	return p
}

// translate appends the numbers of a set's blocks that are part of the problem.
func (p *problem) translate(to, set []int32) []int32 {
	for _, d := range set {
		if n := p.number[d]; n < 0 {
			to = append(to, -n-1)
		}
	}
	return to
}

// clear makes number all zero again.
func (p *problem) clear(sets [][]int32) {
	for _, i := range p.firsts {
		for _, d := range sets[i] {
			p.number[d] = 0
		}
	}
}

// distinct calls visit with each set and the first one that is equal to it, which may be the set itself.
func distinct(sets [][]int32, visit func(i, first int)) {
	type entry struct{ first, next int32 }
	last := make(map[uint64]int32, len(sets)) // hash → latest entry
	var list []entry
	for i, s := range sets {
		h := hashSet(s)
		at, ok := last[h]
		if !ok {
			at = none
		}
		found := none
		for e := at; e != none && found == none; e = list[e].next {
			if equalSets(s, sets[list[e].first]) {
				found = list[e].first
			}
		}
		if found == none {
			found = int32(i)
			last[h] = int32(len(list))
			list = append(list, entry{found, at})
		}
		visit(i, int(found))
	}
}

// hashSet does not depend on the order.
func hashSet(s []int32) uint64 {
	h := uint64(len(s))
	for _, d := range s {
		x := (uint64(uint32(d)) + 1) * 0x9E3779B97F4A7C15
		x ^= x >> 32
		x *= 0xD6E8FEB86659FD93
		h += x ^ x>>29
	}
	return h
}

func equalSets(a, b []int32) bool {
	if len(a) != len(b) {
		return false
	}
	if slices.Equal(a, b) {
		return true
	}
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// check reports the first set or weight that cannot be used.
func check(sets [][]int32, weight []int32) error {
	for d, w := range weight {
		if w < 0 {
			return fmt.Errorf("merge: block %d weighs %d", d, w)
		}
	}
	seen := make([]int32, len(weight)) // by block ID: 1 + the last set that holds it
	for i, set := range sets {
		for _, d := range set {
			if d < 0 || int(d) >= len(seen) {
				return fmt.Errorf("merge: set %d has block %d, weights are known of %d", i, d, len(seen))
			}
			if seen[d] == int32(i+1) {
				return fmt.Errorf("merge: set %d has block %d twice", i, d)
			}
			seen[d] = int32(i + 1)
		}
	}
	return nil
}
