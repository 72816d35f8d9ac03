package offline

import (
	"cmp"
	"slices"
)

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
