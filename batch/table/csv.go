package table

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
)

// csvFile reads CSV and TSV. The standard library's reader would change \r\n in fields, reads a field of any size into memory, and does
// not say what a record looked like, which the writer wants to know.
type csvFile struct {
	t     *Table
	comma byte
}

// openCSV reads the header.
func openCSV(ctx context.Context, t *Table) error {
	c := &csvFile{t: t, comma: ','}
	if t.Format == TSV {
		c.comma = '\t'
	}
	t.reader = c
	return t.file.text(ctx, func(in *bufio.Reader) error {
		r := c.records(in)
		if err := r.next(); err != nil {
			if errors.Is(err, io.EOF) {
				err = t.fail("", fmt.Errorf("%w: there is no header", ErrInvalid))
			}
			return err
		}
		if bytes.IndexByte(r.raw, '\r') >= 0 && bytes.IndexByte(r.raw, '"') < 0 {
			return t.fail("line 1", fmt.Errorf("%w: carriage returns without line feeds in the header", ErrInvalid))
		}
		return t.setColumns(fmt.Sprintf("line %d", r.begin), slices.Clone(r.cells))
	})
}

func (c *csvFile) records(in *bufio.Reader) *records {
	return &records{t: c.t, in: in, comma: c.comma, quotes: !c.t.opts.NoQuotes}
}

func (c *csvFile) each(ctx context.Context, f func(*Row) bool) error {
	t := c.t
	return t.fail("", t.file.text(ctx, func(in *bufio.Reader) error {
		r := c.records(in)
		if err := r.next(); err != nil {
			return err
		}
		r.columns = len(t.Columns)
		var row Row
		for {
			switch err := r.next(); {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return err
			}
			if len(r.cells) != r.columns {
				return t.fail(r.place(), fmt.Errorf("%w: the row has %d fields, the header %d; it begins with %s",
					ErrInvalid, len(r.cells), r.columns, shorten(string(r.raw))))
			}
			row = Row{Line: r.begin, Cells: r.cells, raw: r.raw}
			if !f(&row) {
				return nil
			}
		}
	}))
}

// records splits a text into records of cells.
type records struct {
	t       *Table
	in      *bufio.Reader
	comma   byte
	quotes  bool
	columns int // of the header; 0 while it is read

	line  int      // lines read
	begin int      // the line on which the record begins
	cells []string // of the record
	raw   []byte   // the record without its line end
	end   []byte   // its line end

	long   []byte // memory for long lines
	joined []byte // memory for a record of several lines
	text   []byte // the cells, one after the other
	ends   []int  // where each ends in text
	rest   []byte // what is not read yet of the line
}

// place returns where the record is.
func (r *records) place() string { return fmt.Sprintf("line %d", r.begin) }

// fail returns an error about the cell that comes next.
func (r *records) fail(value []byte, err error) error {
	return r.t.failCell(r.place(), len(r.ends), string(value), err)
}

// next reads a record. An empty line is none, unless the table has one column.
func (r *records) next() error {
	for {
		b, err := r.read()
		if err != nil {
			return err
		}
		r.begin, r.raw, r.ends = r.line, trim(b), r.ends[:0]
		r.end = b[len(r.raw):]
		if len(r.raw) == 0 && r.columns != 1 {
			continue
		}
		if !r.quotes || bytes.IndexByte(r.raw, '"') < 0 {
			return r.plain()
		}
		return r.quoted()
	}
}

// read reads a line.
func (r *records) read() ([]byte, error) {
	b, err := line(r.in, &r.long, r.t.opts.MaxRow)
	if err == nil {
		r.line++
		return b, nil
	}
	if errors.Is(err, errLongLine) {
		err = &Error{
			Source: r.t.source, Place: fmt.Sprintf("line %d", r.line+1), Value: shorten(string(b[:min(len(b), 4*shortest)])),
			Err: fmt.Errorf("%w: the line has more than %d bytes (MaxRow)", ErrTooLarge, r.t.opts.MaxRow),
		}
	}
	return nil, err
}

// plain splits a record that has no quotes. All cells are parts of one string.
func (r *records) plain() error {
	if !clean(r.raw) {
		return r.dirty()
	}
	s := string(r.raw)
	r.cells = r.cells[:0]
	from := 0
	for at := bytes.IndexByte(r.raw, r.comma); at >= 0; {
		r.cells = append(r.cells, s[from:from+at])
		from += at + 1
		at = bytes.IndexByte(r.raw[from:], r.comma)
	}
	r.cells = append(r.cells, s[from:])
	if len(s) > r.t.opts.MaxCell {
		return r.measure()
	}
	return nil
}

// quoted splits a record in which quotes are.
func (r *records) quoted() error {
	r.text, r.rest = r.text[:0], r.raw
	for more := true; more; {
		var err error
		if len(r.rest) > 0 && r.rest[0] == '"' {
			more, err = r.quote()
		} else {
			more, err = r.bare()
		}
		if err != nil {
			return err
		}
	}
	if !clean(r.raw) {
		return r.dirtyCells()
	}
	r.split()
	return r.measure()
}

// split makes cells of the text.
func (r *records) split() {
	s, from := string(r.text), 0
	r.cells = r.cells[:0]
	for _, end := range r.ends {
		r.cells = append(r.cells, s[from:end])
		from = end
	}
}

// bare reads a field that does not begin with a quote. more reports whether another one follows.
func (r *records) bare() (more bool, err error) {
	field := r.rest
	if at := bytes.IndexByte(field, r.comma); at >= 0 {
		field, r.rest, more = field[:at], field[at+1:], true
	}
	if bytes.IndexByte(field, '"') >= 0 {
		return false, r.fail(field, fmt.Errorf("%w: a quote in a field that does not begin with one", ErrInvalid))
	}
	r.text = append(r.text, field...)
	r.ends = append(r.ends, len(r.text))
	return more, nil
}

// quote reads a field that begins with a quote.
func (r *records) quote() (more bool, err error) {
	from, first := len(r.text), r.line
	r.rest = r.rest[1:]
	for {
		at := bytes.IndexByte(r.rest, '"')
		if at < 0 {
			r.text = append(r.text, r.rest...)
			if err := r.join(from, first); err != nil {
				return false, err
			}
			continue
		}
		r.text = append(r.text, r.rest[:at]...)
		switch r.rest = r.rest[at+1:]; {
		case len(r.rest) == 0:
		case r.rest[0] == '"':
			r.text, r.rest = append(r.text, '"'), r.rest[1:]
			continue
		case r.rest[0] == r.comma:
			more, r.rest = true, r.rest[1:]
		default:
			err := fmt.Errorf("%w: %s after the closing quote on line %d", ErrInvalid, shorten(string(r.rest[:min(len(r.rest), 8)])), r.line)
			return false, r.fail(r.text[from:], err)
		}
		r.ends = append(r.ends, len(r.text))
		return more, nil
	}
}

// join reads the next line of a record, in the middle of a field that begins at from in text, on line first.
func (r *records) join(from, first int) error {
	value := r.text[from:]
	if len(value) > r.t.opts.MaxCell {
		return r.fail(value, fmt.Errorf("%w: the quoted field that begins on line %d has more than %d bytes (MaxCell), or no closing quote",
			ErrTooLarge, first, r.t.opts.MaxCell))
	}
	unclosed := fmt.Errorf("%w: the quoted field that begins on line %d has no closing quote", ErrInvalid, first)
	if len(r.end) == 0 {
		return r.fail(value, unclosed)
	}
	r.text = append(r.text, r.end...) // it is part of the field
	if r.begin == r.line {
		r.joined = append(r.joined[:0], r.raw...) // out of the memory of the line
	}
	r.joined = append(r.joined, r.end...)
	b, err := r.read()
	if errors.Is(err, io.EOF) {
		return r.fail(r.text[from:], unclosed)
	}
	if err != nil {
		return err
	}
	if len(r.joined)+len(b) > r.t.opts.MaxRow {
		return r.fail(r.text[from:], fmt.Errorf("%w: the row has more than %d bytes (MaxRow) on line %d; the quoted field that begins on line %d"+
			" may have no closing quote", ErrTooLarge, r.t.opts.MaxRow, r.line, first))
	}
	at := len(r.joined)
	r.joined = append(r.joined, b...)
	r.raw = trim(r.joined)
	r.joined, r.end, r.rest = r.joined[:len(r.raw)], r.joined[len(r.raw):], r.raw[at:]
	return nil
}

// measure refuses cells that are too large.
func (r *records) measure() error {
	for i, cell := range r.cells {
		if len(cell) > r.t.opts.MaxCell {
			return r.t.failCell(r.place(), i, cell, fmt.Errorf("%w: the cell has %d bytes, at most %d are allowed (MaxCell)",
				ErrTooLarge, len(cell), r.t.opts.MaxCell))
		}
	}
	return nil
}

// dirty returns which cell of a record without quotes cannot be read.
func (r *records) dirty() error {
	r.text, r.ends = r.text[:0], r.ends[:0]
	for field := range bytes.SplitSeq(r.raw, []byte{r.comma}) {
		r.text = append(r.text, field...)
		r.ends = append(r.ends, len(r.text))
	}
	return r.dirtyCells()
}

// dirtyCells returns which cell cannot be read.
func (r *records) dirtyCells() error {
	r.split()
	for i, cell := range r.cells {
		if err := problem(cell); err != nil {
			return r.t.failCell(r.place(), i, around(cell), fmt.Errorf("%w: the cell %w", ErrInvalid, err))
		}
	}
	return r.t.fail(r.place(), fmt.Errorf("%w: the row %w", ErrInvalid, errUTF8))
}
