package table

import (
	"fmt"
	"strings"
)

// Cell is what is written into an added column. The zero Cell is an empty text.
type Cell struct {
	Text string
	Null bool // there is no text; CSV and TSV have an empty cell for it
}

// Text returns a cell with a text.
func Text(s string) Cell { return Cell{Text: s} }

// Writer writes the rows of a table with columns added. It is not safe for concurrent use.
type Writer struct {
	out  *output
	like *Table
	rows int
	each encoder
	more []string // the added columns
}

// encoder writes rows in one format.
type encoder interface {
	row(r *Row, added []Cell) error
	// end writes what is behind the last row.
	end() error
}

// Create begins an output that has the rows of a table, each with cells of more columns. The file appears when [Writer.Commit] returns
// without an error; until then it is a temporary file beside it. Only its owner may read it.
//
// The format goes by the name. Each format can be written from a table of the same format: CSV and TSV records, the members of JSON
// objects and the values of Parquet stay as they are in the input, byte for byte. CSV, TSV and JSON lines can be written from all tables
// with columns. OpenAI batch output has a form of its own, see [CreateResults].
//
// An output that is there is refused with [ErrExists], unless opts says otherwise; the input is always refused. So is a column that the
// table has already.
func Create(path string, like *Table, columns []string, opts WriteOptions) (*Writer, error) {
	format, packed, err := outputFormat(path, opts)
	if err != nil {
		return nil, &Error{Source: path, Err: err}
	}
	if err := writable(format, like.Format); err != nil {
		return nil, &Error{Source: path, Err: err}
	}
	if err := like.adds(path, columns); err != nil {
		return nil, err
	}
	out, err := createOutput(path, like, opts, packed)
	if err != nil {
		return nil, err
	}
	w := &Writer{out: out, like: like, more: columns}
	switch format {
	case CSV, TSV:
		w.each, err = newCSVEncoder(out, like, columns, format)
	case JSONL:
		w.each = newJSONEncoder(out, like, columns)
	default:
		w.each, err = newParquetEncoder(out, like, columns)
	}
	if err != nil {
		_ = out.drop() // the first error is the one to know
		return nil, &Error{Source: path, Err: err}
	}
	return w, nil
}

// outputFormat returns the format of an output.
func outputFormat(path string, opts WriteOptions) (Format, bool, error) {
	if opts.Format == "" {
		return formatOf(path)
	}
	return opts.Format, strings.HasSuffix(strings.ToLower(path), ".gz"), nil
}

// writable returns an error if a table cannot be written in a format.
func writable(to, from Format) error {
	switch {
	case from == OpenAI:
		return fmt.Errorf("%w: OpenAI batch input has no columns; its answers are written with CreateResults", ErrFormat)
	case to == CSV || to == TSV || to == JSONL || to == Parquet && from == Parquet:
		return nil
	case to == Parquet:
		return fmt.Errorf("%w: Parquet is written from Parquet only; use .csv or .jsonl", ErrFormat)
	}
	return fmt.Errorf("%w: a table cannot be written as %s", ErrFormat, to)
}

// adds checks the names of added columns.
func (t *Table) adds(path string, columns []string) error {
	seen := map[string]bool{}
	for _, name := range columns {
		var err error
		_, there := t.at[name]
		switch bad := problem(name); {
		case there:
			err = fmt.Errorf("%w: it is a column of %s; choose another name for the answer", ErrExists, t.source)
		case seen[name]:
			err = fmt.Errorf("%w: the column is added twice", ErrExists)
		case name == "":
			err = fmt.Errorf("%w: the name of an added column is empty", ErrInvalid)
		case bad != nil:
			err = fmt.Errorf("%w: the name %w", ErrInvalid, bad)
		}
		if err != nil {
			return &Error{Source: path, Column: name, Err: err}
		}
		seen[name] = true
	}
	return nil
}

// Write writes a row, as [Table.Rows] returned it, with one cell for each added column. Rows come in the order of the input, from the
// first; another row is refused. After an error nothing more is written.
func (w *Writer) Write(row *Row, added ...Cell) error {
	if err := w.out.ready(); err != nil {
		return err
	}
	if row.Number != w.rows {
		return w.out.fail(row.Place(), fmt.Errorf("%w: row %d was written where row %d is next", ErrInvalid, row.Number+1, w.rows+1))
	}
	if len(added) != len(w.more) {
		return w.out.fail(row.Place(), fmt.Errorf("%w: %d cells for %d added columns", ErrInvalid, len(added), len(w.more)))
	}
	for i, cell := range added {
		if err := problem(cell.Text); err != nil {
			w.out.failed = &Error{
				Source: w.out.path, Place: row.Place(), Column: w.more[i], Value: shorten(around(cell.Text)),
				Err: fmt.Errorf("%w: the cell %w", ErrInvalid, err),
			}
			return w.out.failed
		}
	}
	if err := w.each.row(row, added); err != nil {
		return w.out.fail(row.Place(), err)
	}
	w.rows++
	return nil
}

// Commit makes the file appear under its name, once it is on the disk with all rows of the table. A table that was read to its end before
// is known to have so many rows: with fewer the file is removed, and the error says how many are missing.
func (w *Writer) Commit() error {
	if err := w.out.ready(); err != nil {
		return w.out.commit() // removes the file
	}
	err := w.each.end()
	if rows := w.like.rows.Load() - 1; err == nil && rows >= 0 && int64(w.rows) != rows {
		err = fmt.Errorf("%w: %d of %d rows were written", ErrInvalid, w.rows, rows)
	}
	_ = w.out.fail("", err)
	return w.out.commit()
}

// Close removes the file if it was not committed. It may always be called.
func (w *Writer) Close() error { return w.out.drop() }
