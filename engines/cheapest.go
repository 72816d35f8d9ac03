package engines

import "math"

// cheapest returns for each row of cost, of which there are no more than columns, a column of its own, so that the sum
// is least: Kuhn's assignment by shortest augmenting paths (Jonker and Volgenant, 1987), O(rows² × columns). Of equal rows the
// first is placed first.
//
// Prices prove it: price of row i + price of column j ≤ cost[i][j] for all, with equality where i has j; a column's price is ≤ 0,
// and 0 where no row has it.
func cheapest(cost [][]int) []int {
	if len(cost) == 0 {
		return []int{}
	}
	const none = -1
	columns := len(cost[0])
	rowPrice, price := make([]int, len(cost)), make([]int, columns)
	owner, from := make([]int, columns), make([]int, columns)  // by column: its row; the column that the path comes from
	short, done := make([]int, columns), make([]bool, columns) // by column: how much dearer the shortest path is than the prices say
	for j := range owner {
		owner[j] = none
	}
	for i := range cost {
		for j := range short {
			from[j], short[j], done[j] = none, math.MaxInt, false
		}
		last, way := none, 0 // the column that the path has come to, and its length
		for row := i; row != none; row = owner[last] {
			nearest := none
			for j, c := range cost[row] {
				if done[j] {
					continue
				}
				if more := way + c - rowPrice[row] - price[j]; more < short[j] {
					short[j], from[j] = more, last
				}
				if nearest == none || short[j] < short[nearest] {
					nearest = j
				}
			}
			last, way, done[nearest] = nearest, short[nearest], true
		}
		rowPrice[i] += way // now prove the longer assignment
		for j := range columns {
			if done[j] && owner[j] != none {
				rowPrice[owner[j]] += way - short[j]
				price[j] -= way - short[j]
			}
		}
		for ; from[last] != none; last = from[last] { // each column on the path gets the row of the one before it
			owner[last] = owner[from[last]]
		}
		owner[last] = i
	}
	to := make([]int, len(cost))
	for j, i := range owner {
		if i != none {
			to[i] = j
		}
	}
	return to
}
