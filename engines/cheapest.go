package engines

import (
	"math"
)

// cheapest returns for each row of cost, of which there are no more than columns, a column of its own, so that the sum
// is least: Kuhn's assignment by shortest augmenting paths (Jonker and Volgenant, 1987), O(rows² × columns). Of equal rows the
// first is placed first.
func cheapest(cost [][]int) []int {
	if len(cost) == 0 {
		return []int{}
	}
	m := matching{
		cost: cost, row: make([]int, len(cost)), column: make([]int, len(cost[0])),
		owner: make([]int, len(cost[0])), from: make([]int, len(cost[0])), short: make([]int, len(cost[0])), done: make([]bool, len(cost[0])),
	}
	for j := range m.owner {
		m.owner[j] = -1
	}
	for i := range cost {
		m.place(i)
	}
	to := make([]int, len(cost))
	for j, i := range m.owner {
		if i >= 0 {
			to[i] = j
		}
	}
	return to
}

// matching is a cheapest assignment of the rows so far. Prices prove it: row[i] + column[j] ≤ cost[i][j] for all, with
// equality where i has j, and column[j] ≤ 0 with 0 where nobody has j.
type matching struct {
	cost        [][]int
	row, column []int // prices
	owner       []int // by column: its row, or -1

	// of the search in hand, by column
	from  []int // the column that the path comes from, or -1
	short []int // how much dearer the shortest path is than the prices say
	done  []bool
}

// place gives row i a column, and moves others as that requires.
func (m *matching) place(i int) {
	for j := range m.short {
		m.from[j], m.short[j], m.done[j] = -1, math.MaxInt, false
	}
	last, way := -1, 0 // column that the path has come to, and its length
	for row := i; row >= 0; row = m.owner[last] {
		m.look(row, last, way)
		last = m.nearest()
		way = m.short[last]
		m.done[last] = true
	}
	m.settle(i, way)
	for last >= 0 { // each on the path takes the column of the one behind it
		before := m.from[last]
		if before < 0 {
			m.owner[last] = i
		} else {
			m.owner[last] = m.owner[before]
		}
		last = before
	}
}

// look goes on from a row that was reached over a column.
func (m *matching) look(row, over, way int) {
	for j, c := range m.cost[row] {
		if more := way + c - m.row[row] - m.column[j]; !m.done[j] && more < m.short[j] {
			m.short[j], m.from[j] = more, over
		}
	}
}

// nearest returns the column that is reached most cheaply of those not done.
func (m *matching) nearest() int {
	at := -1
	for j, s := range m.short {
		if !m.done[j] && (at < 0 || s < m.short[at]) {
			at = j
		}
	}
	return at
}

// settle changes the prices so that they prove the longer assignment.
func (m *matching) settle(i, way int) {
	m.row[i] += way
	for j, s := range m.short {
		if m.done[j] && m.owner[j] >= 0 {
			m.row[m.owner[j]] += way - s
			m.column[j] -= way - s
		}
	}
}
