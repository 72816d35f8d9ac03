package table

import (
	"context"
	"fmt"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/parquet-go/parquet-go"
)

// Table is an open table. It is safe for concurrent use; several passes may run at the same time.
type Table struct {
	// Columns are the names of the columns, in order. They are nil for OpenAI batch input.
	Columns []string
	// Format is the format of the source.
	Format Format

	source string // for errors: without a password
	opts   Options
	file   *file       // where rows are read: the source itself, or a snapshot of it
	input  os.FileInfo // the file that is the source; nil: it is none
	reader reader
	at     map[string]int
	rows   atomic.Int64 // as the last whole pass counted them, plus one; 0: there was none

	closing sync.Once
	closed  atomic.Bool
	closeAs error
}

// reader reads rows of one format from the first.
type reader interface {
	// each calls f with every row until f returns false, then returns nil. The row is valid until f returns.
	each(ctx context.Context, f func(*Row) bool) error
}

// Row is one row of a table. Its slices are valid until the next row is read; [Row.Clone] returns a copy to keep. The strings stay valid.
type Row struct {
	Number int      // from 0, in the order of the input
	Line   int      // the line on which it begins, from 1; 0 where the source has no lines
	Cells  []string // one a column; a NULL is ""

	ID   string // custom_id of an OpenAI batch line; else ""
	URL  string // url of an OpenAI batch line; else ""
	Body []byte // body of an OpenAI batch line, a JSON object as it stands there; else nil

	nulls  []bool      // one a column; nil: no cell is NULL
	raw    []byte      // CSV: the record without its line end; JSONL: the object
	values parquet.Row // Parquet: the values of all leaf columns
}

// Place returns where the row stands, for people: "line 12" or "row 11". Lines and rows count from 1.
func (r *Row) Place() string {
	if r.Line > 0 {
		return "line " + strconv.Itoa(r.Line)
	}
	return "row " + strconv.Itoa(r.Number+1)
}

// Null reports whether a cell is NULL, or a member that a JSON object does not have. A CSV file has no NULL.
func (r *Row) Null(column int) bool { return r.nulls != nil && r.nulls[column] }

// Clone returns a copy that stays valid.
func (r *Row) Clone() Row {
	out := *r
	out.Cells, out.nulls = slices.Clone(r.Cells), slices.Clone(r.nulls)
	out.Body, out.raw = slices.Clone(r.Body), slices.Clone(r.raw)
	out.values = r.values.Clone()
	return out
}

// Rows reads all rows, from the first. Every call gives the same rows. An error is an [*Error] or wraps that of the context, and ends the
// iteration; the row beside it is empty.
func (t *Table) Rows(ctx context.Context) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		stopped := false
		err := t.each(ctx, func(r *Row) bool {
			stopped = !yield(r, nil)
			return !stopped
		})
		if err != nil && !stopped {
			yield(&Row{}, err)
		}
	}
}

// each reads all rows. What makes a reader fail because the file is not what it was is reported as [ErrChanged].
func (t *Table) each(ctx context.Context, f func(*Row) bool) error {
	if t.closed.Load() {
		return t.fail("", ErrClosed)
	}
	n, done := 0, true
	err := t.reader.each(ctx, func(r *Row) bool {
		if n&1023 == 0 && ctx.Err() != nil {
			done = false
			return false
		}
		r.Number = n
		n++
		done = f(r)
		return done
	})
	if stopped := ctx.Err(); stopped != nil {
		return fmt.Errorf("%s: %w", t.source, stopped)
	}
	if !done && err == nil {
		return nil
	}
	if changed := t.file.unchanged(); changed != nil {
		return t.fail("", changed)
	}
	if err == nil {
		t.rows.Store(int64(n) + 1)
	}
	return err
}

// Column returns the position of a column. The error wraps [ErrColumn] and lists the columns that there are.
func (t *Table) Column(name string) (int, error) {
	if at, ok := t.at[name]; ok {
		return at, nil
	}
	return 0, &Error{Source: t.source, Column: name, Err: fmt.Errorf("%w; the table has %s", ErrColumn, names(t.Columns))}
}

// names lists the first columns.
func names(columns []string) string {
	const most = 20
	out := make([]string, 0, most+1)
	for i, name := range columns {
		if i == most {
			out = append(out, fmt.Sprintf("and %d more", len(columns)-most))
			break
		}
		out = append(out, shorten(name))
	}
	if len(out) == 0 {
		return "no columns"
	}
	return strings.Join(out, ", ")
}

// Close removes the snapshot of the source, if there is one. A pass that runs may fail.
func (t *Table) Close() error {
	t.closing.Do(func() {
		t.closed.Store(true)
		t.closeAs = t.file.remove()
	})
	return t.closeAs
}

// setColumns checks the names of columns and keeps them. place is where the names stand.
func (t *Table) setColumns(place string, columns []string) error {
	t.at = make(map[string]int, len(columns))
	if len(columns) > t.opts.MaxColumns {
		return t.fail(place, fmt.Errorf("%w: %d columns, at most %d are allowed (MaxColumns)", ErrTooLarge, len(columns), t.opts.MaxColumns))
	}
	for i, name := range columns {
		if name == "" {
			return t.fail(place, fmt.Errorf("%w: the name of column %d is empty", ErrInvalid, i+1))
		}
		if at := problem(name); at != nil {
			return t.fail(place, fmt.Errorf("%w: the name of column %d, %s, %w", ErrInvalid, i+1, shorten(name), at))
		}
		if first, ok := t.at[name]; ok {
			return t.fail(place, fmt.Errorf("%w: columns %d and %d are both named %s", ErrInvalid, first+1, i+1, shorten(name)))
		}
		t.at[name] = i
	}
	t.Columns = columns
	return nil
}
