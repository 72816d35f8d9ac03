package order

import (
	"bytes"
	"cmp"
	"slices"
)

// greedy orders rows of a table by groups: the unit with the largest worth, its weight times its repetitions, goes first in its rows; these
// rows and the others are ordered on. Where no unit repeats, or the depth or the steps are spent, columns are ordered by their mean worth.
type greedy struct {
	greedyOptions

	p      *part
	weight []int64   // by unit
	cells  [][]int32 // by row: units that have no place yet
	out    [][]int32
	count  []int32 // by unit, scratch: zero between looks
	met    []int32
	steps  int // left
}

// greedyOptions are how a greedy goes about it.
type greedyOptions struct {
	linear           bool  // weights are bytes, not their squares
	stop             int64 // least worth of a group
	rowStop, kidStop int   // depth; 0: unlimited
}

// greedies are the settings to try. The first two are those of the published program (Liu et al.).
var greedies = []greedyOptions{{stop: 100_000, rowStop: 4, kidStop: 2}, {rowStop: 4, kidStop: 2}, {}, {linear: true}}

const greedySteps = 60_000_000

// newGreedy weighs each unit by the length in bytes of the words that the other units of its column do not share, or by the square of that.
func newGreedy(p *part, columns int, o greedyOptions) *greedy {
	g := &greedy{greedyOptions: o, p: p, weight: make([]int64, len(p.text)), count: make([]int32, len(p.text)), steps: greedySteps}
	for c := range columns {
		first := p.text[p.sets[0][c]]
		head, tail := len(first), len(first)
		for _, s := range p.sets {
			text := p.text[s[c]]
			head, tail = min(head, common(first, text)), min(tail, commonEnd(first, text))
		}
		head = bytes.LastIndexAny(first[:head], " \n") + 1
		end := first[len(first)-tail:]
		if i := bytes.IndexAny(end, " \n"); i >= 0 {
			tail -= i
		} else {
			tail = 0
		}
		for _, s := range p.sets {
			w := int64(max(len(p.text[s[c]])-head-tail, 1))
			if !o.linear {
				w *= w
			}
			g.weight[s[c]] = max(g.weight[s[c]], w)
		}
	}
	return g
}

func commonEnd(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// orders sets columns aside that are mostly distinct; they stand last.
func (g *greedy) orders(columns int) [][]int32 {
	all := make([]int32, len(g.p.sets))
	for r := range all {
		all[r] = int32(r)
	}
	g.cells, g.out = g.p.sets, make([][]int32, len(all))
	var early, late []int
	for _, c := range g.byWorth(all, columns) {
		seen := map[int32]bool{}
		for _, s := range g.p.sets {
			seen[s[c]] = true
		}
		if 10*len(seen) > 7*len(all) {
			late = append(late, c)
		} else {
			early = append(early, c)
		}
	}
	g.cells = make([][]int32, len(all))
	for r, s := range g.p.sets {
		for _, c := range early {
			g.cells[r] = append(g.cells[r], s[c])
		}
	}
	g.group(all, 0, 0)
	for r, s := range g.p.sets {
		for _, c := range late {
			g.out[r] = append(g.out[r], s[c])
		}
	}
	return g.out
}

// byWorth sorts n positions in cells by the mean weight times the mean repetitions of the units there.
func (g *greedy) byWorth(rows []int32, n int) []int {
	worth := make([]float64, n)
	for i := range n {
		g.met = g.met[:0]
		sum := int64(0)
		for _, r := range rows {
			u := g.cells[r][i]
			if g.count[u]++; g.count[u] == 1 {
				g.met = append(g.met, u)
			}
			sum += g.weight[u]
		}
		for _, u := range g.met {
			g.count[u] = 0
		}
		worth[i] = float64(sum) / float64(len(rows)) * (float64(len(rows))/float64(len(g.met)) - 1)
	}
	g.steps -= len(rows) * n
	by := make([]int, n)
	for i := range by {
		by[i] = i
	}
	slices.SortStableFunc(by, func(a, b int) int { return cmp.Compare(worth[b], worth[a]) })
	return by
}

// group orders rows that all have the same number of cells left.
func (g *greedy) group(rows []int32, rowDepth, kidDepth int) {
	for len(rows) > 0 && len(g.cells[rows[0]]) > 0 {
		u, worth := g.best(rows)
		deep := g.rowStop > 0 && rowDepth >= g.rowStop || g.kidStop > 0 && kidDepth >= g.kidStop || g.steps <= 0
		if deep || worth == 0 || worth < g.stop {
			for _, i := range g.byWorth(rows, len(g.cells[rows[0]])) {
				for _, r := range rows {
					g.out[r] = append(g.out[r], g.cells[r][i])
				}
			}
			return
		}
		var with, without []int32
		for _, r := range rows {
			i := slices.Index(g.cells[r], u)
			if i < 0 {
				without = append(without, r)
				continue
			}
			with = append(with, r)
			g.out[r] = append(g.out[r], u)
			g.cells[r] = slices.Delete(g.cells[r], i, i+1)
		}
		g.group(with, rowDepth, kidDepth+1)
		rows = without
		rowDepth++
	}
}

// best returns the unit with the largest worth.
func (g *greedy) best(rows []int32) (best int32, worth int64) {
	g.met = g.met[:0]
	for _, r := range rows {
		for _, u := range g.cells[r] {
			if g.count[u]++; g.count[u] == 1 {
				g.met = append(g.met, u)
			}
		}
		g.steps -= len(g.cells[r])
	}
	for _, u := range g.met {
		if w := g.weight[u] * int64(g.count[u]-1); w > worth || w == worth && w > 0 && u < best {
			best, worth = u, w
		}
		g.count[u] = 0
	}
	return best, worth
}
