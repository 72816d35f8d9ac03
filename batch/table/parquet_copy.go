package table

import (
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/format"
)

// parquetCopy makes fields of an output of the columns of an input.
type parquetCopy struct {
	meta  *format.FileMetaData
	types map[*parquet.Column]parquet.Type // see oldTypes
}

// copiedField is a column of the input as it is written.
type copiedField struct {
	*parquet.Column

	typ      parquet.Type
	encoding encoding.Encoding
	fields   []parquet.Field
}

func (f *copiedField) Type() parquet.Type          { return f.typ }
func (f *copiedField) Encoding() encoding.Encoding { return f.encoding }
func (f *copiedField) Fields() []parquet.Field     { return f.fields }

// field returns the field of a column.
func (p *parquetCopy) field(c *parquet.Column) parquet.Field {
	f := &copiedField{Column: c, typ: c.Type()}
	if c.Leaf() {
		f.encoding = p.encoding(c)
		return f
	}
	if old := p.types[c]; old != nil {
		f.typ = old
	}
	for _, inner := range c.Columns() {
		f.fields = append(f.fields, p.field(inner))
	}
	return f
}

// encoding returns how a leaf is encoded: with a dictionary if the input has one, else plain. The library would take the first encoding
// that the input's footer names. That may be the encoding of the levels, one that the library cannot write, or the old form of
// dictionaries, which it writes in a way that no reader understands.
func (p *parquetCopy) encoding(c *parquet.Column) encoding.Encoding {
	if c.Type().Kind() == parquet.Boolean {
		return &parquet.Plain
	}
	for g := range p.meta.RowGroups {
		for _, e := range p.meta.RowGroups[g].Columns[c.Index()].MetaData.Encoding {
			if e == format.RLEDictionary || e == format.PlainDictionary { //nolint:staticcheck // old files have the deprecated one
				return &parquet.RLEDictionary
			}
		}
	}
	return &parquet.Plain
}

// oldTypes returns the types of lists and maps that are marked in the old way only, as DuckDB does. The library takes them for other
// groups.
func oldTypes(f *parquet.File) map[*parquet.Column]parquet.Type {
	list, object := parquet.List(parquet.String()).Type(), parquet.Map(parquet.String(), parquet.String()).Type()
	types, next, elements := map[*parquet.Column]parquet.Type{}, 0, f.Metadata().Schema
	var walk func(*parquet.Column)
	walk = func(c *parquet.Column) {
		element := &elements[next]
		next++
		if old := element.ConvertedType; !c.Leaf() && element.LogicalType == nil && old != nil {
			switch *old {
			case deprecated.List:
				types[c] = list
			case deprecated.Map:
				types[c] = object
			}
		}
		for _, inner := range c.Columns() {
			walk(inner)
		}
	}
	walk(f.Root())
	return types
}
