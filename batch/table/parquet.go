package table

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// parquetFile reads Parquet.
type parquetFile struct {
	t      *Table
	fields []parquetField                   // one a column
	types  map[*parquet.Column]parquet.Type // see oldTypes
}

// parquetField is a column, with the range of its leaves.
type parquetField struct {
	from, to int
	node     *parquet.Column
	text     func(parquet.Value) string // of a flat column; nil: it is nested
}

// openParquet checks the file and reads its schema.
func openParquet(ctx context.Context, t *Table) error {
	p := &parquetFile{t: t}
	t.reader = p
	return p.with(func(in input, f *parquet.File) error {
		p.types = oldTypes(f)
		leaf := 0
		columns := make([]string, 0, len(f.Root().Columns()))
		for _, c := range f.Root().Columns() {
			field := parquetField{from: leaf, node: c}
			leaf += leaves(c)
			field.to = leaf
			if c.Leaf() && !c.Repeated() {
				field.text = parquetText(c.Type())
			}
			p.fields = append(p.fields, field)
			columns = append(columns, c.Name())
		}
		if err := t.setColumns("", columns); err != nil {
			return err
		}
		return guardChunks(ctx, t, in, f)
	})
}

// leaves returns how many leaves a column has.
func leaves(c *parquet.Column) int {
	if c.Leaf() {
		return 1
	}
	n := 0
	for _, c := range c.Columns() {
		n += leaves(c)
	}
	return n
}

// guardChunks checks all pages.
func guardChunks(ctx context.Context, t *Table, in input, f *parquet.File) error {
	var columns []*parquet.Column
	var walk func(*parquet.Column)
	walk = func(c *parquet.Column) {
		if c.Leaf() {
			columns = append(columns, c)
		}
		for _, c := range c.Columns() {
			walk(c)
		}
	}
	walk(f.Root())
	groups, first := f.Metadata().RowGroups, 1
	for g := range groups {
		if len(groups[g].Columns) != len(columns) {
			return fmt.Errorf("%w: row group %d has %d columns, the schema %d", errParquet, g+1, len(groups[g].Columns), len(columns))
		}
		if groups[g].NumRows == 0 {
			continue // its columns may stand nowhere
		}
		memory := int64(0)
		for i := range groups[g].Columns {
			page, err := guardChunk(ctx, in, f.Size(), &groups[g].Columns[i], columns[i])
			if codec := groups[0].Columns[i].MetaData.Codec; codec != groups[g].Columns[i].MetaData.Codec {
				// The library unpacks all row groups as the first, so unpack has not bounded what it allocates.
				err = fmt.Errorf("%w: not compressed as in the first row group, with %s", ErrFormat, codec)
			}
			if memory += page; err == nil && memory > mostMemory {
				err = fmt.Errorf("%w: one page of each column has more than %d bytes", ErrTooLarge, mostMemory)
			}
			if err != nil {
				name := strings.Join(columns[i].Path(), ".")
				place := fmt.Sprintf("row group %d, from row %d", g+1, first)
				return &Error{Source: t.source, Place: place, Column: name, Err: invalid(err)}
			}
		}
		first += int(groups[g].NumRows)
	}
	return nil
}

// invalid marks an error of the content.
func invalid(err error) error {
	for _, known := range []error{ErrInvalid, ErrTooLarge, ErrFormat, ErrChanged, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return err
		}
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	return fmt.Errorf("%w: %w", ErrInvalid, err)
}

// with calls f with the open file. A panic of the library is an error.
func (p *parquetFile) with(f func(input, *parquet.File) error) (err error) {
	in, err := p.t.file.open()
	if err != nil {
		return p.t.fail("", err)
	}
	defer in.Close()
	defer func() {
		if fault := recover(); fault != nil {
			err = p.t.fail("", fmt.Errorf("%w: %w: %v", ErrInvalid, errParquet, fault))
		}
	}()
	size := p.t.file.info.Size()
	if err := guardFooter(in, size); err != nil {
		return p.t.fail("", invalid(err))
	}
	file, err := parquet.OpenFile(in, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return p.t.fail("", invalid(err))
	}
	if err := f(in, file); err != nil {
		return p.t.fail("", invalid(err))
	}
	return nil
}

// callerPanic carries a panic of the function that gets the rows through the recovery.
type callerPanic struct{ fault any }

func (p *parquetFile) each(ctx context.Context, f func(*Row) bool) (err error) {
	var fault *callerPanic
	err = p.with(func(_ input, file *parquet.File) error {
		n := 0
		for _, group := range file.RowGroups() {
			if group.NumRows() == 0 {
				continue
			}
			more, err := p.group(ctx, group, &n, func(r *Row) (more bool) {
				returned := false
				defer func() {
					if !returned { // Goexit too
						fault = &callerPanic{recover()}
						more = false
					}
				}()
				more = f(r)
				returned = true
				return more
			})
			if err != nil || !more {
				return err
			}
		}
		return nil
	})
	if fault != nil {
		panic(fault.fault)
	}
	return err
}

// group reads a row group.
func (p *parquetFile) group(ctx context.Context, group parquet.RowGroup, n *int, f func(*Row) bool) (more bool, err error) {
	rows := group.Rows()
	defer rows.Close()
	buf := make([]parquet.Row, 64)
	row := Row{Cells: make([]string, len(p.fields)), nulls: make([]bool, len(p.fields))}
	read := int64(0)
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		k, err := rows.ReadRows(buf)
		for _, values := range buf[:k] {
			*n++
			read++
			if err := p.cells(fmt.Sprintf("row %d", *n), values, &row); err != nil {
				return false, err
			}
			row.values = values
			if !f(&row) {
				return false, nil
			}
		}
		switch {
		case errors.Is(err, io.EOF) || k == 0 && err == nil:
			if read != group.NumRows() {
				return false, p.t.fail(fmt.Sprintf("row %d", *n+1), fmt.Errorf("%w: %w: a row group has %d rows of %d",
					ErrInvalid, errParquet, read, group.NumRows()))
			}
			return true, nil
		case err != nil:
			return false, p.t.fail(fmt.Sprintf("row %d", *n+1), invalid(err))
		}
	}
}

// cells fills the cells of a row.
func (p *parquetFile) cells(place string, values parquet.Row, row *Row) error {
	at, size := 0, 0
	for i, field := range p.fields {
		from := at
		for at < len(values) && values[at].Column() < field.to {
			at++
		}
		own := values[from:at]
		if len(own) == 0 || own[0].Column() != field.from || field.text != nil && len(own) != 1 {
			return p.t.failCell(place, i, "", fmt.Errorf("%w: %w: %d values", ErrInvalid, errParquet, len(own)))
		}
		var cell string
		null := false
		switch {
		case field.text == nil:
			j := jsonOfParquet{types: p.types}
			j.split(own, field.from, field.to)
			if null = field.node.Optional() && own[0].DefinitionLevel() == 0; !null {
				j.field(field.node, 0, 0, j.whole())
				cell = string(j.out)
			}
		case own[0].IsNull():
			null = true
		default:
			cell = field.text(own[0])
		}
		if len(cell) > p.t.opts.MaxCell {
			return p.t.failCell(place, i, cell, fmt.Errorf("%w: the cell has %d bytes, at most %d are allowed (MaxCell)",
				ErrTooLarge, len(cell), p.t.opts.MaxCell))
		}
		if size += len(cell); size > p.t.opts.MaxRow {
			return p.t.failCell(place, i, cell, fmt.Errorf("%w: the row has more than %d bytes (MaxRow)", ErrTooLarge, p.t.opts.MaxRow))
		}
		if err := problem(cell); err != nil {
			return p.t.failCell(place, i, around(cell), fmt.Errorf("%w: the cell %w", ErrInvalid, err))
		}
		row.Cells[i], row.nulls[i] = cell, null
	}
	return nil
}
