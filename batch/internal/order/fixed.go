package order

import (
	"cmp"
	"slices"
)

const beam = 6 // sets of columns looked at for each size

// fixed returns orders with the same order of columns for all rows.
func (p *part) fixed(columns int) [][]int32 {
	by := p.columnOrder(columns)
	out := make([][]int32, len(p.sets))
	for r, s := range p.sets {
		out[r] = make([]int32, columns)
		for i, c := range by {
			out[r][i] = s[c]
		}
	}
	return out
}

// leg is a set of columns that stand first, in the order found.
type leg struct {
	order []int
	used  uint64
	saved int64
	group []int32 // by row: rows with equal cells in these columns have the same number
	count int32   // of groups
}

// columnOrder looks for the order of columns whose trie is smallest. What a column saves behind others depends on which they are and not
// on their order, so of the orders of one set of columns only the best is kept.
func (p *part) columnOrder(columns int) []int {
	rows := len(p.sets)
	rank := rankTexts(p.text)
	sorted := make([][]int32, columns) // by column: rows by text
	for c := range sorted {
		sorted[c] = make([]int32, rows)
		for r := range sorted[c] {
			sorted[c][r] = int32(r)
		}
		slices.SortFunc(sorted[c], func(a, b int32) int { return cmp.Compare(rank[p.sets[a][c]], rank[p.sets[b][c]]) })
	}
	level, best := []leg{{group: make([]int32, rows), count: 1}}, leg{saved: -1}
	for len(level) > 0 {
		var next []leg
		at := map[uint64]int{}
		for _, l := range level {
			if int(l.count) == rows || len(l.order) == columns { // more columns save nothing
				if l.saved > best.saved {
					best = l
				}
				continue
			}
			for c := range columns {
				if slices.Contains(l.order, c) {
					continue
				}
				n := p.extend(l, c, sorted[c])
				n.used = l.used + (uint64(c)+1)*0x9E3779B97F4A7C15*(uint64(c)+7)
				if i, ok := at[n.used]; ok {
					if n.saved > next[i].saved {
						next[i] = n
					}
					continue
				}
				at[n.used] = len(next)
				next = append(next, n)
			}
		}
		slices.SortStableFunc(next, func(a, b leg) int { return cmp.Compare(b.saved, a.saved) })
		level = next[:min(beam, len(next))]
	}
	return best.finish(columns)
}

func (l leg) finish(columns int) []int {
	order := slices.Clone(l.order)
	for c := range columns {
		if !slices.Contains(order, c) {
			order = append(order, c)
		}
	}
	return order
}

// extend puts column c behind l.
func (p *part) extend(l leg, c int, sorted []int32) leg {
	rows := len(p.sets)
	start := make([]int32, l.count+1)
	for _, g := range l.group {
		start[g+1]++
	}
	for g := range l.count {
		start[g+1] += start[g]
	}
	by := make([]int32, rows)
	for _, r := range sorted {
		g := l.group[r]
		by[start[g]] = r
		start[g]++
	}
	n := leg{order: append(slices.Clone(l.order), c), saved: l.saved, group: make([]int32, rows)}
	for i, r := range by {
		if i > 0 && l.group[by[i-1]] == l.group[r] {
			a, b := p.sets[by[i-1]][c], p.sets[r][c]
			if a == b {
				n.saved += int64(len(p.text[a]))
				n.group[r] = n.count - 1
				continue
			}
			n.saved += int64(common(p.text[a], p.text[b]))
		}
		n.group[r] = n.count
		n.count++
	}
	return n
}
