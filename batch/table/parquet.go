package table

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
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

// openParquet reads the file's schema.
func openParquet(_ context.Context, t *Table) error {
	p := &parquetFile{t: t}
	t.reader = p
	return p.with(func(f *parquet.File) error {
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
		return checkBooleans(f)
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

// errParquet is why a file is not read that is no Parquet file, or a broken one.
var errParquet = errors.New("broken Parquet file")

// checkFooter checks how long the file's metadata are: the library allocates what the file says, up to 4 GiB.
func checkFooter(f input, size int64) error {
	var tail [8]byte
	if size < 12 {
		return fmt.Errorf("%w: %d bytes are too few", errParquet, size)
	}
	if _, err := f.ReadAt(tail[:], size-8); err != nil {
		return err
	}
	if string(tail[4:]) != "PAR1" {
		return fmt.Errorf("%w: it does not end as a Parquet file does, so it is cut off or none", errParquet)
	}
	if n := int64(binary.LittleEndian.Uint32(tail[:])); n > size-12 {
		return fmt.Errorf("%w: metadata of %d bytes in a file of %d", errParquet, n, size)
	}
	return nil
}

// checkBooleans refuses booleans in runs: the library reads a run of true as one true and seven false.
func checkBooleans(f *parquet.File) error {
	for _, group := range f.Metadata().RowGroups {
		for i := range group.Columns {
			m := &group.Columns[i].MetaData
			if m.Type == format.Boolean && m.NumValues > 0 && !slices.Contains(m.Encoding, format.Plain) {
				return fmt.Errorf("%w: column %q has booleans in runs; write them with plain encoding (data page version 1.0)",
					ErrFormat, strings.Join(m.PathInSchema, "."))
			}
		}
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
func (p *parquetFile) with(f func(*parquet.File) error) (err error) {
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
	if err := checkFooter(in, size); err != nil {
		return p.t.fail("", invalid(err))
	}
	file, err := parquet.OpenFile(in, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return p.t.fail("", invalid(err))
	}
	if err := f(file); err != nil {
		return p.t.fail("", invalid(err))
	}
	return nil
}

// callerPanic carries a panic of the function that gets the rows through the recovery.
type callerPanic struct{ fault any }

func (p *parquetFile) each(ctx context.Context, f func(*Row) bool) (err error) {
	var fault *callerPanic
	err = p.with(func(file *parquet.File) error {
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
