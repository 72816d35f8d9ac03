package batch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/ragpilot/ragpilot/batch/internal/order"
	"github.com/ragpilot/ragpilot/batch/internal/queue"
	"github.com/ragpilot/ragpilot/batch/table"
)

// prepared is a task for a table: its prompts, their order, and what workers need. Close removes its temporary files.
type prepared struct {
	task   *Task
	layout *layout // nil: the table is an OpenAI batch file
	table  *table.Table
	spec   *spec
	rows   *rowFile // the units of each row; of an OpenAI batch file one, and the body behind it
	plan   *order.Plan
	begin  []int  // where subtrees begin, in requests
	dir    string // for temporary files

	textOnly bool // see AddOptions
}

// describe checks the whole table and the task against each other. It must be closed.
func describe(ctx context.Context, t *table.Table, task *Task) (*prepared, error) {
	if err := task.check(); err != nil {
		return nil, err
	}
	p := &prepared{task: task, table: t}
	if err := p.layOut(); err != nil {
		return nil, err
	}
	summary, err := t.Check(ctx)
	if err != nil {
		return nil, err
	}
	if summary.Rows == 0 {
		return nil, errors.New("the table has no rows")
	}
	p.spec = newSpec(task, p.layout, summary.Digest)
	return p, nil
}

// arrange makes the prompts of all rows and orders them.
func (p *prepared) arrange(ctx context.Context, dir string) (err error) {
	p.dir = dir
	if p.rows, err = newRowFile(dir); err != nil {
		return err
	}
	if err := p.read(ctx); err != nil {
		return err
	}
	columns := order.AsIs
	if p.layout != nil && p.layout.inPlace == "" {
		columns = order.Columns(p.layout.order)
	}
	if p.plan, err = order.New(ctx, planned{p}, order.Options{Columns: columns, Dir: dir}); err != nil {
		return err
	}
	var shared []int
	for r, err := range p.plan.Requests() {
		if err != nil {
			return err
		}
		shared = append(shared, r.Shared)
	}
	p.begin = subtrees(shared, leastSubtree, mostSubtree)
	return nil
}

// layOut checks the prompt against the columns.
func (p *prepared) layOut() (err error) {
	if p.table.Format != table.OpenAI {
		p.layout, err = p.task.Prompt.layout(p.table.Columns, p.task.Retrieve != nil)
		return err
	}
	t := p.task
	if t.Prompt.isSet() || t.Model != "" || t.MaxTokens != 0 || t.Temperature != 0 || len(t.Schema) > 0 || t.Retrieve != nil {
		return errors.New("an OpenAI batch file has whole requests: a prompt, a model, a schema or bounds of answers cannot be added")
	}
	return nil
}

// retrievedAtOnce is for how many rows a retriever is asked at a time.
const retrievedAtOnce = 16

// read keeps the units of all rows.
func (p *prepared) read(ctx context.Context) error {
	var rows []*table.Row
	for row, err := range p.table.Rows(ctx) {
		switch {
		case err != nil:
			return err
		case p.task.Retrieve == nil:
			err = p.keep(ctx, row)
		default:
			own := row.Clone()
			if rows = append(rows, &own); len(rows) == retrievedAtOnce {
				err = p.keep(ctx, rows...)
				rows = rows[:0]
			}
		}
		if err != nil {
			return err
		}
	}
	return p.keep(ctx, rows...)
}

// keep makes the units of some rows side by side, and keeps them in the order of the rows.
func (p *prepared) keep(ctx context.Context, rows ...*table.Row) error {
	units, errs := make([][]string, len(rows)), make([]error, len(rows))
	var wait sync.WaitGroup
	for i, row := range rows {
		one := func() { units[i], errs[i] = p.units(ctx, row) }
		if len(rows) == 1 {
			one()
			break
		}
		wait.Go(one)
	}
	wait.Wait()
	for i, row := range rows {
		if errs[i] != nil {
			return fmt.Errorf("%s: %w", row.Place(), errs[i])
		}
		if err := p.rows.add(units[i]); err != nil {
			return err
		}
	}
	return nil
}

func (p *prepared) units(ctx context.Context, row *table.Row) ([]string, error) {
	if p.layout == nil {
		if row.URL != "/v1/chat/completions" {
			return nil, fmt.Errorf("url %q: only /v1/chat/completions can be run", row.URL)
		}
		text, err := bodyText(row.Body)
		if err == nil && p.textOnly {
			err = onlyText(row.Body)
		}
		return []string{text, string(row.Body)}, err
	}
	if p.task.Retrieve == nil {
		return p.layout.units(row.Cells, nil)
	}
	cells := make(map[string]string, len(row.Cells))
	for i, cell := range row.Cells {
		cells[p.table.Columns[i]] = cell
	}
	blocks, err := p.task.Retrieve(ctx, cells)
	if err != nil {
		return nil, fmt.Errorf("retrieve: %w", err)
	}
	return p.layout.units(row.Cells, blocks)
}

// Close removes the temporary files.
func (p *prepared) Close() error {
	var errs []error
	if p.plan != nil {
		errs = append(errs, p.plan.Close())
	}
	if p.rows != nil {
		errs = append(errs, p.rows.Close())
	}
	return errors.Join(errs...)
}

// requests returns the requests as they are stored.
func (p *prepared) requests() iter.Seq2[queue.Request, error] {
	return func(yield func(queue.Request, error) bool) {
		seq, subtree := 0, -1
		for r, err := range p.plan.Requests() {
			var request queue.Request
			if err == nil {
				if subtree+1 < len(p.begin) && p.begin[subtree+1] == seq {
					subtree++
				}
				request, err = p.request(seq, subtree, &r)
			}
			if !yield(request, err) || err != nil {
				return
			}
			seq++
		}
	}
}

func (p *prepared) request(seq, subtree int, r *order.Request) (queue.Request, error) {
	request := queue.Request{Seq: seq, Subtree: subtree, Rows: r.Rows}
	if len(request.Rows) == 0 {
		request.Rows = []int{r.Row}
	}
	units, err := p.rows.row(r.Row)
	if err != nil {
		return request, err
	}
	if p.layout == nil {
		request.Body = []byte(units[1])
		return request, nil
	}
	var b strings.Builder
	for _, at := range r.Order {
		b.WriteString(units[at])
	}
	request.Text = b.String()
	return request, nil
}

// planned gives the units of the rows to the planner.
type planned struct{ *prepared }

// Rows implements [order.Source].
func (p planned) Rows() iter.Seq2[[]string, error] {
	if p.layout != nil {
		return p.rows.Rows()
	}
	return func(yield func([]string, error) bool) {
		for units, err := range p.rows.Rows() {
			if err == nil {
				units = units[:1]
			}
			if !yield(units, err) {
				return
			}
		}
	}
}

// isSet reports whether a prompt says anything.
func (p *Prompt) isSet() bool {
	return p.System != "" || p.Text != "" || len(p.Columns) > 0 || p.Blocks != "" || len(p.Examples) > 0 || p.Order != ""
}
