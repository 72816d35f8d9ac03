package order_test

import (
	"iter"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/batch/internal/order"
)

// permuted gives the units of rows in another order.
type permuted struct {
	rows [][]string
	by   []int
}

func (p permuted) Rows() iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		for _, row := range p.rows {
			units := make([]string, len(row))
			for i, at := range p.by {
				units[i] = row[at]
			}
			if !yield(units, nil) {
				return
			}
		}
	}
}

// TestFixedIsTheBestOrder compares with all orders of three columns, of which one may tell all rows apart.
func TestFixedIsTheBestOrder(t *testing.T) {
	saved := func(t *rapid.T, s order.Source, c order.Columns) int64 {
		p, err := order.New(t.Context(), s, order.Options{Columns: c, Effort: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		return p.Totals.Saved
	}
	rapid.Check(t, func(t *rapid.T) {
		var rows [][]string
		for i := range rapid.IntRange(1, 20).Draw(t, "rows") {
			id := ""
			if rapid.Bool().Draw(t, "numbered") {
				id = string(rune('a' + i))
			}
			rows = append(rows, []string{
				id + "\n", rapid.SampledFrom([]string{"x", "a long text", "a long test"}).Draw(t, "b") + "\n",
				rapid.SampledFrom([]string{"west", "east"}).Draw(t, "c") + "\n",
			})
		}
		best := int64(0)
		for _, by := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
			best = max(best, saved(t, permuted{rows, by}, order.AsIs))
		}
		if got := saved(t, permuted{rows, []int{0, 1, 2}}, order.Fixed); got != best {
			t.Fatalf("fixed saves %d bytes, the best order %d", got, best)
		}
	})
}
