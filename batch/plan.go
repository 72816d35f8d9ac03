package batch

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/ragpilot/ragpilot/batch/internal/order"
	"github.com/ragpilot/ragpilot/batch/table"
)

// Order says which orders of a row's cells are allowed. Rows may come in any order with all of them.
type Order string

// Orders of cells.
const (
	PerRow Order = "per-row" // every row has its own
	Fixed  Order = "fixed"   // all rows have the same
	AsIs   Order = "as-is"   // cells stay in the order of the columns
)

// Cells says how a cell stands in a prompt.
type Cells string

// Forms of cells.
const (
	Labelled Cells = "labelled" // a line "column: cell"
	Values   Cells = "values"   // the cell alone, nothing between two
)

// Options say how a table is planned. The zero value is the recommended setup.
type Options struct {
	Order Order  // "": PerRow
	Cells Cells  // "": Labelled
	Dir   string // for temporary files; "": the system's
	// Without are columns that do not stand in prompts.
	Without []string
}

func (o *Options) check() error {
	if o.Order == "" {
		o.Order = PerRow
	}
	if o.Cells == "" {
		o.Cells = Labelled
	}
	switch o.Order {
	case PerRow, Fixed, AsIs:
	default:
		return fmt.Errorf("order %q: want %s, %s or %s", o.Order, PerRow, Fixed, AsIs)
	}
	if o.Cells != Labelled && o.Cells != Values {
		return fmt.Errorf("cells %q: want %s or %s", o.Cells, Labelled, Values)
	}
	return nil
}

// Totals are sums over all rows of a plan. Bytes are those of the cells in their form; what stands around them is not counted.
type Totals struct {
	Rows      int
	Requests  int   // prompts; rows with the same cells share one
	Bytes     int64 // of all rows
	Saved     int64 // of these, what the plan saves: shared prefixes, and rows that another row's prompt answers
	FileOrder int64 // what the table as it is saves
	Bound     int64 // no plan can save more; with Values an estimate
}

// Request is one prompt of a plan.
type Request struct {
	Row     int      `json:"row"`            // whose cells stand in the prompt; rows count from 0
	Columns []string `json:"columns"`        // in the order of the prompt
	Rows    []int    `json:"rows,omitempty"` // all rows that the prompt answers, if there are several
}

// Plan is an order of a table's rows and cells. It is not safe for concurrent use.
type Plan struct {
	columns []string
	plan    *order.Plan
}

// NewPlan plans a table. The plan must be closed. Errors of the table name the place and the value. An OpenAI batch file has no columns and
// is refused.
func NewPlan(ctx context.Context, t *table.Table, o Options) (*Plan, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	source, err := newCells(ctx, t, o)
	if err != nil {
		return nil, err
	}
	p, err := order.New(ctx, source, order.Options{Columns: order.Columns(o.Order), Dir: o.Dir})
	if err != nil {
		return nil, err
	}
	return &Plan{columns: source.columns, plan: p}, nil
}

// Close removes the plan's temporary files.
func (p *Plan) Close() error { return p.plan.Close() }

// Totals returns what the plan saves.
func (p *Plan) Totals() Totals {
	t := p.plan.Totals
	return Totals{t.Rows, t.Requests, t.Bytes, t.Saved, t.FileOrder, t.Bound}
}

// Requests returns the prompts in the order in which they should be sent.
func (p *Plan) Requests() iter.Seq2[Request, error] {
	return func(yield func(Request, error) bool) {
		for r, err := range p.plan.Requests() {
			if err != nil {
				yield(Request{}, err)
				return
			}
			request := Request{Row: r.Row, Columns: make([]string, len(r.Order))}
			for i, at := range r.Order {
				request.Columns[i] = p.columns[at]
			}
			if len(r.Rows) > 1 {
				request.Rows = r.Rows
			}
			if !yield(request, nil) {
				return
			}
		}
	}
}

// Write writes the plan as JSON lines, one for each request in the order of execution.
func (p *Plan) Write(w io.Writer) error {
	b := bufio.NewWriterSize(w, 1<<16)
	encoder := json.NewEncoder(b)
	encoder.SetEscapeHTML(false)
	for r, err := range p.Requests() {
		if err != nil {
			return err
		}
		if err := encoder.Encode(r); err != nil {
			return fmt.Errorf("write plan: %w", err)
		}
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	return nil
}

// cells gives the rows of a table to the planner.
type cells struct {
	ctx     context.Context //nolint:containedctx // order.Source has none, and the planner looks at its own
	table   *table.Table
	form    Cells
	columns []string // that stand in prompts
	at      []int    // their places in the table
}

func newCells(ctx context.Context, t *table.Table, o Options) (*cells, error) {
	for _, name := range o.Without {
		if _, err := t.Column(name); err != nil {
			return nil, err
		}
	}
	c := &cells{ctx: ctx, table: t, form: o.Cells}
	for i, name := range t.Columns {
		if !slices.Contains(o.Without, name) {
			c.columns, c.at = append(c.columns, name), append(c.at, i)
		}
	}
	if len(c.columns) == 0 {
		return nil, errors.New("the table has no columns to be ordered")
	}
	return c, nil
}

// Rows implements [order.Source].
func (c *cells) Rows() iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		units := make([]string, len(c.columns))
		for row, err := range c.table.Rows(c.ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			for i, at := range c.at {
				cell := row.Cells[at]
				if c.form == Labelled {
					cell = c.columns[i] + ": " + cell + "\n"
				}
				units[i] = cell
			}
			if !yield(units, nil) {
				return
			}
		}
	}
}
