package order

import "iter"

// Source gives the rows of a table. A row is a list of units: texts that stand one after the other in its prompt, and may stand in any
// order. A cell is a unit ("region: west\n"), so is a retrieved block.
type Source interface {
	// Rows reads all rows from the first; every call gives the same. The slice is valid until the next row.
	Rows() iter.Seq2[[]string, error]
}

// Columns says which orders of units are allowed.
type Columns string

// The ways to order the units of rows.
const (
	PerRow Columns = "per-row" // every row has its own order
	Fixed  Columns = "fixed"   // one order of columns for all rows; every row has the same number of units
	AsIs   Columns = "as-is"   // units stay as they are; only rows are ordered
)

// Request is one prompt of a plan.
type Request struct {
	Row    int   // the row whose units stand in the prompt; rows count from 0
	Order  []int // positions in the units of the row, in prompt order; each once
	Rows   []int // all rows with the same units, which this prompt answers; Row is the first
	Shared int   // bytes of the prompt's units that are a prefix of the earlier request that shares most
}
