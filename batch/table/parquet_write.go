package table

import (
	"fmt"
	"reflect"

	"github.com/parquet-go/parquet-go"
)

// A row group of an output, which the library keeps in memory until it is complete, ends at one of these.
const (
	rowsInGroup  = 50_000
	bytesInGroup = 64 << 20
)

// parquetEncoder writes Parquet: the schema of the input with optional strings behind it.
type parquetEncoder struct {
	w     *parquet.GenericWriter[any]
	next  int // the first added leaf
	row1  []parquet.Row
	count int // rows in the row group
	size  int // bytes of their cells
}

// orderedGroup is a group whose fields have an order; those of the library are sorted by name.
type orderedGroup struct {
	parquet.Group
	fields []parquet.Field
}

func (g *orderedGroup) Fields() []parquet.Field { return g.fields }

// addedField is an added column.
type addedField struct {
	parquet.Node
	name string
}

func (f *addedField) Name() string { return f.name }

func (f *addedField) Value(base reflect.Value) reflect.Value {
	return base.MapIndex(reflect.ValueOf(&f.name).Elem())
}

func newParquetEncoder(out *output, like *Table, columns []string) (encoder, error) {
	p, ok := like.reader.(*parquetFile)
	if !ok {
		return nil, fmt.Errorf("%w: %s as Parquet", ErrFormat, like.Format)
	}
	e := &parquetEncoder{row1: make([]parquet.Row, 1)}
	err := p.with(func(f *parquet.File) error {
		group := &orderedGroup{}
		copied := parquetCopy{f.Metadata(), oldTypes(f)}
		for _, column := range f.Root().Columns() {
			field := copied.field(column)
			if field.Leaf() && field.Type().LogicalType() != nil && field.Type().LogicalType().Unknown != nil {
				// A column of NULLs without a type, which the library cannot write.
				field = &addedField{parquet.Optional(parquet.Leaf(parquet.Int32Type)), field.Name()}
			}
			group.fields = append(group.fields, field)
		}
		e.next = leaves(f.Root())
		var skip []parquet.WriterOption // the bounds of texts, which are whole cells in the footer
		for _, path := range f.Schema().Columns() {
			if leaf, ok := f.Schema().Lookup(path...); ok && leaf.Node.Type().Kind() == parquet.ByteArray {
				skip = append(skip, parquet.SkipPageBounds(path...))
			}
		}
		for _, name := range columns {
			skip = append(skip, parquet.SkipPageBounds(name))
			node := parquet.Compressed(parquet.Optional(parquet.String()), &parquet.Snappy)
			group.fields = append(group.fields, &addedField{node, name})
		}
		e.w = parquet.NewGenericWriter[any](out.w, append(skip, parquet.NewSchema(f.Root().Name(), group))...)
		for _, pair := range f.Metadata().KeyValueMetadata {
			if pair.Key != "ARROW:schema" && pair.Key != "pandas" { // they describe the columns of the input only
				e.w.SetKeyValueMetadata(pair.Key, pair.Value)
			}
		}
		return nil
	})
	return e, err
}

func (e *parquetEncoder) row(r *Row, added []Cell) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("write Parquet: %v", fault)
		}
	}()
	if r.values == nil {
		return fmt.Errorf("%w: the row is not from a Parquet file", ErrInvalid)
	}
	row := append(e.row1[0][:0], r.values...)
	for i, cell := range added {
		if cell.Null {
			row = append(row, parquet.NullValue().Level(0, 0, e.next+i))
			continue
		}
		row = append(row, parquet.ByteArrayValue([]byte(cell.Text)).Level(0, 1, e.next+i))
		e.size += len(cell.Text)
	}
	e.row1[0] = row
	if _, err := e.w.WriteRows(e.row1); err != nil {
		return err
	}
	for _, cell := range r.Cells {
		e.size += len(cell)
	}
	if e.count++; e.count < rowsInGroup && e.size < bytesInGroup {
		return nil
	}
	e.count, e.size = 0, 0
	return e.w.Flush()
}

func (e *parquetEncoder) end() (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("write Parquet: %v", fault)
		}
	}()
	return e.w.Close()
}
