package eval

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/ragpilot/ragpilot/batch"
	tables "github.com/ragpilot/ragpilot/batch/table"
	"github.com/ragpilot/ragpilot/internal/lab/draw"
)

// CellSystem is the system message in front of rows of a table.
const CellSystem = "Use the row of the table to answer the question. Answer with the value only."

// MaxListed is the number of values of a column up to which a question lists them.
const MaxListed = 20

// CellOrders are the orders of cells that are compared, the first of which is what the others are compared with.
func CellOrders() []batch.Order { return []batch.Order{batch.AsIs, batch.Fixed, batch.PerRow} }

// CellOptions say what a table is asked.
type CellOptions struct {
	Ask  string // the column that is hidden and asked for
	Rows int    // to be drawn; if the table has fewer, all are asked
	Seed uint64 // of the draw
}

// Cells are rows of a table, each with one cell hidden, in several forms: the orders that [batch.NewPlan] gives to the rest of the table.
type Cells struct {
	Table Table
	Forms []Form // by [CellOrders]
}

// Form is one order of cells.
type Form struct {
	Arm   Arm
	Rows  []Row   // in the order in which the plan sends them; the blocks are cells in the order of the table
	Order [][]int // by row, the order of its blocks
}

// Table is what a report says of the table that the rows are from.
type Table struct {
	Ask      string   `json:"ask"`                 // the hidden column
	Rows     int      `json:"rows"`                // of the whole table
	Wanted   int      `json:"wanted"`              // rows that were to be drawn
	Unasked  int      `json:"unasked"`             // rows whose hidden cell has nothing to compare with; they are never drawn
	Values   int      `json:"values"`              // different ones in the hidden column; 0: more than [MaxListed], and not listed
	Frequent float64  `json:"most_frequent"`       // share of the asked rows that have the most frequent answer
	Above    Interval `json:"above_most_frequent"` // exact match of the first form less Frequent
	Saved    []Saved  `json:"saved"`               // by form
	Advised  string   `json:"advised"`             // the order of cells that this run speaks for
}

// Saved is what a plan for the whole table saves, as a share of the bytes of all cells.
type Saved struct {
	Order string  `json:"order"`
	Share float64 `json:"share"`
}

// NewCells draws rows of a table and plans the whole table in each order. The hidden column takes no part in the plans. Errors name the
// column, or the place and the value.
func NewCells(ctx context.Context, t *tables.Table, o CellOptions) (*Cells, error) {
	if o.Rows < 1 {
		return nil, fmt.Errorf("rows %d: want at least 1", o.Rows)
	}
	hidden, err := t.Column(o.Ask)
	if err != nil {
		return nil, err
	}
	if len(t.Columns) < 3 {
		return nil, fmt.Errorf("column %q: want at least two columns beside it, whose order can change", o.Ask)
	}
	c := &Cells{Table: Table{Ask: o.Ask, Wanted: o.Rows}}
	asked, values, err := c.look(ctx, t, hidden)
	if err != nil {
		return nil, err
	}
	drawn := map[int]*Row{}
	for _, i := range draw.Permutation[int](draw.New(o.Seed, cellStream), len(asked))[:min(o.Rows, len(asked))] {
		drawn[asked[i]] = nil
	}
	if err := c.read(ctx, t, hidden, drawn, question(o.Ask, values)); err != nil {
		return nil, err
	}
	for _, order := range CellOrders() {
		if err := c.plan(ctx, t, order, drawn); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// cellStream is the stream of random numbers that rows are drawn with.
const cellStream = 0x7ab1e

// look reads the hidden column: the rows that can be asked, and its values if they are few.
func (c *Cells) look(ctx context.Context, t *tables.Table, hidden int) (asked []int, values []string, err error) {
	raw, different := map[string]bool{}, map[string]bool{}
	for row, err := range t.Rows(ctx) {
		if err != nil {
			return nil, nil, err
		}
		c.Table.Rows++
		value := strings.TrimSpace(row.Cells[hidden])
		answer := Normalise(value)
		if answer == "" {
			c.Table.Unasked++
			continue
		}
		asked = append(asked, row.Number)
		if len(raw) <= MaxListed {
			raw[value] = true
		}
		if len(different) < 2 {
			different[answer] = true
		}
	}
	switch {
	case c.Table.Rows == 0:
		return nil, nil, errors.New("the table has no rows")
	case len(asked) == 0:
		return nil, nil, fmt.Errorf("column %q: no row has a value to ask for", c.Table.Ask)
	case len(different) == 1:
		value := slices.Min(slices.Collect(maps.Keys(raw)))
		return nil, nil, fmt.Errorf("column %q: all rows have the value %q, so that there is nothing to ask", c.Table.Ask, value)
	case len(raw) > MaxListed:
		return asked, nil, nil
	}
	c.Table.Values = len(raw)
	return asked, slices.Sorted(maps.Keys(raw)), nil
}

// question asks for the value of a column, one of the values if they are few.
func question(ask string, values []string) string {
	if len(values) == 0 {
		return fmt.Sprintf("What is the %s of this row?", ask)
	}
	return fmt.Sprintf("What is the %s of this row? Answer with one of these values: %s", ask, strings.Join(values, ", "))
}

// read makes the rows that were drawn.
func (c *Cells) read(ctx context.Context, t *tables.Table, hidden int, drawn map[int]*Row, question string) error {
	counts := map[string]int{}
	for row, err := range t.Rows(ctx) {
		if err != nil {
			return err
		}
		if _, ok := drawn[row.Number]; !ok {
			continue
		}
		r := &Row{
			ID: strconv.Itoa(row.Number), Question: question, Answers: []string{strings.TrimSpace(row.Cells[hidden])},
			Lead: fmt.Sprintf("The %s of this row is", c.Table.Ask),
		}
		for i, cell := range row.Cells {
			if i != hidden {
				r.Blocks = append(r.Blocks, Block{t.Columns[i], t.Columns[i] + ": " + cell + "\n"})
			}
		}
		drawn[row.Number] = r
		answer := Normalise(r.Answers[0])
		counts[answer]++
		c.Table.Frequent = max(c.Table.Frequent, float64(counts[answer])/float64(len(drawn)))
	}
	return nil
}

// plan adds the form of an order.
func (c *Cells) plan(ctx context.Context, t *tables.Table, order batch.Order, drawn map[int]*Row) (err error) {
	p, err := batch.NewPlan(ctx, t, batch.Options{Order: order, Without: []string{c.Table.Ask}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	profile := fixed[Plain]
	profile.Name = string(order)
	form := Form{Arm: Arm{Name: string(order), Profile: profile, Cells: string(order)}}
	for r, err := range p.Requests() {
		if err != nil {
			return err
		}
		if len(r.Rows) == 0 {
			r.Rows = []int{r.Row}
		}
		for _, number := range r.Rows {
			row := drawn[number]
			if row == nil {
				continue
			}
			at := make([]int, len(r.Columns))
			for i, name := range r.Columns {
				at[i] = slices.IndexFunc(row.Blocks, func(b Block) bool { return b.ID == name })
			}
			form.Rows, form.Order = append(form.Rows, *row), append(form.Order, at)
		}
	}
	total := p.Totals()
	c.Forms = append(c.Forms, form)
	c.Table.Saved = append(c.Table.Saved, Saved{string(order), float64(total.Saved) / float64(max(total.Bytes, 1))})
	return nil
}

// Run is the run of one form. The scorer and the rest of the settings are to be added.
func (f *Form) Run() *Run { return &Run{Rows: f.Rows, Arms: []Arm{f.Arm}, Cells: f.Order} }

// Judge makes the report of the outcomes of all forms. The header is that of the first one's run.
func (c *Cells) Judge(h Header, outcomes [][]Outcome, s Settings) (*Report, error) {
	h.Arms = nil
	at := map[string]int{}
	var rows []Outcome
	for i := range c.Forms {
		h.Arms = append(h.Arms, c.Forms[i].Arm)
		for _, o := range outcomes[i] {
			if i == 0 {
				at[o.Row] = len(rows)
				rows = append(rows, o)
				continue
			}
			row := &rows[at[o.Row]]
			row.Arms = append(slices.Clip(row.Arms), o.Arms...)
		}
	}
	for _, o := range rows {
		if len(o.Arms) != len(h.Arms) {
			return nil, fmt.Errorf("row %q: asked in %d forms, want %d", o.Row, len(o.Arms), len(h.Arms))
		}
	}
	of := c.Table
	r, err := judgeRows(h, rows, s, &of)
	if err != nil {
		return nil, err
	}
	of.Advised = r.advised()
	return r, nil
}

// advised is the order of cells that computes fewest tokens of those that are not inferior, or the table's.
func (r *Report) advised() string {
	best := &r.Arms[0]
	for i := range r.Arms[1:] {
		if a := &r.Arms[i+1]; a.Verdict == NotInferior && a.Layouts.Computed < best.Layouts.Computed {
			best = a
		}
	}
	return best.Cells
}

// above is how much more often plain is right than the same answer to all rows would be.
func (t *table) above(frequent float64, s Settings) Interval {
	boot := Bootstrap{s.Resamples, s.Seed, Confidence}
	i, _ := boot.Mean(t.sums(func(o *Outcome) float64 { return one(o.Arms[0].Exact) - frequent }))
	return i
}

// text writes what was asked.
func (t *Table) text(w io.Writer, rows int) {
	fmt.Fprintf(w, "%d of %d rows of the table, asked for %s; every order of cells is compared with %s, row by row\n", rows, t.Rows, t.Ask,
		batch.AsIs)
	if rows < t.Wanted {
		fmt.Fprintf(w, "%d rows were to be asked; these are all\n", t.Wanted)
	}
	if t.Unasked > 0 {
		fmt.Fprintf(w, "%d rows have no value that can be asked for\n", t.Unasked)
	}
	how := fmt.Sprintf("more than %d values, which are not listed in the question", MaxListed)
	if t.Values > 0 {
		how = fmt.Sprintf("%d values, all listed in the question", t.Values)
	}
	fmt.Fprintf(w, "%s; the most frequent one is right in %s %% of these rows\n", how, percent(t.Frequent))
}

// cells writes the part of the report that only tables have.
func (r *Report) cells(out io.Writer) error {
	t := r.Table
	if !(t.Above.Low > 0) {
		fmt.Fprintf(out, "no verdict: %s is not shown to be right more often than the most frequent value (%s points), so that there may be "+
			"nothing to lose\n", r.Arms[0].Name, points(t.Above))
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	name := r.Arms[0].Name
	fmt.Fprintf(w, "arm\tas %s %%\tplaces moved\testimated tokens\tcomputed\tof %s's\treported tokens\tcached\tcomputed\tof %s's\t"+
		"whole table saved\t\n", name, name, name)
	for i, a := range r.Arms {
		l := a.Layouts
		fmt.Fprintf(w, "%s\t%s\t%.2f\t%d\t%d\t%s %%\t", a.Name, percent(l.Same), l.Moved, l.Tokens, l.Computed,
			percent(float64(l.Computed)/max(1, float64(r.Arms[0].Layouts.Computed))))
		if l.Reported > 0 {
			fmt.Fprintf(w, "%d", l.Reported)
		}
		fmt.Fprint(w, "\t")
		if first := r.Arms[0].Layouts; l.Cached != nil && first.Cached != nil {
			computed := l.Reported - *l.Cached
			fmt.Fprintf(w, "%d\t%d\t%s %%\t", *l.Cached, computed, percent(float64(computed)/max(1, float64(first.Reported-*first.Cached))))
		} else {
			fmt.Fprint(w, "\t\t\t")
		}
		fmt.Fprintf(w, "%s %%\t\n", percent(t.Saved[i].Share))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "estimated: computed is what no earlier prompt of the arm began with, in whole cells; reported: by the engine, "+
		"with the cache that it has\nwhole table saved: share of the bytes of the cells of all %d rows, by the plan\n\n", t.Rows)
	if t.Advised == r.Arms[0].Cells {
		fmt.Fprintf(out, "no other order is shown to be as good and to compute less: --columns %s keeps the order of the table\n\n", t.Advised)
	} else {
		fmt.Fprintf(out, "not inferior, and computes least: --columns %s\n\n", t.Advised)
	}
	return r.power(out)
}
