package table

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// copied writes a table with a column more, and returns what is in the output but for that column.
func copied(t *testing.T, in *Table) (*Table, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "o.parquet")
	if err := annotate(t, in, path, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	out := open(t, path, Options{})
	return out, strings.NewReplacer("|answer", "", `|yes, "so"`, "", "|∅\n", "\n").Replace(dump(t, out))
}

// Encodings in the footer are listed in any order, with that of the levels, and files of Spark name the old form of dictionaries.
func TestWriteParquetWithEncodingsOfOthers(t *testing.T) {
	type record struct {
		Name string  `parquet:"name,dict"`
		Text string  `parquet:"text,plain"`
		Big  int64   `parquet:"big"`
		Real float64 `parquet:"real,split"`
		Yes  bool    `parquet:"yes"`
	}
	var b bytes.Buffer
	if err := parquet.Write(&b, []record{{"a", "b", 1, 0.5, true}, {"A", "c", 2, 0.5, false}}); err != nil {
		t.Fatal(err)
	}
	const dictionary, packed = format.PlainDictionary, format.BitPacked //nolint:staticcheck // old files have the deprecated ones
	for name, encodings := range map[string][5][]format.Encoding{
		"levels first":     {{format.RLE, format.RLEDictionary}, {format.RLE}, {format.RLE, format.Plain}, {format.RLE}, {format.RLE, format.Plain}},
		"old dictionaries": {{dictionary, format.RLE}, {format.Plain}, {format.Plain}, {format.ByteStreamSplit}, {format.Plain}},
		"old levels":       {{packed, dictionary}, {packed, format.Plain}, {packed}, {packed}, {packed, format.Plain}},
		"packed numbers":   {{format.RLE, format.RLEDictionary}, {format.Plain}, {format.ByteStreamSplit}, {format.RLE}, {format.RLE, format.Plain}},
	} {
		t.Run(name, func(t *testing.T) {
			in := open(t, write(t, "t.parquet", changedFooter(t, b.Bytes(), func(m *format.FileMetaData) {
				for i := range m.RowGroups[0].Columns {
					m.RowGroups[0].Columns[i].MetaData.Encoding = encodings[i]
				}
			})), Options{})
			if _, got := copied(t, in); got != dump(t, in) {
				t.Errorf("got\n%s\nwant\n%s", got, dump(t, in))
			}
		})
	}
}

// DuckDB marks lists and maps in the old way only.
func TestParquetWithOldMarks(t *testing.T) {
	type record struct {
		List []string         `parquet:"alist,list"`
		Map  map[string]int32 `parquet:"amap"`
	}
	var b bytes.Buffer
	if err := parquet.Write(&b, []record{{[]string{"p", "q"}, map[string]int32{"k": 1}}, {}}); err != nil {
		t.Fatal(err)
	}
	now := open(t, write(t, "t.parquet", b.String()), Options{})
	old := open(t, write(t, "t.parquet", changedFooter(t, b.Bytes(), func(m *format.FileMetaData) {
		for i := range m.Schema {
			element := &m.Schema[i]
			if logical := element.LogicalType; logical != nil && (logical.List != nil || logical.Map != nil) {
				mark := deprecated.List
				if logical.Map != nil {
					mark = deprecated.Map
				}
				element.LogicalType, element.ConvertedType = nil, &mark
			}
		}
	})), Options{})
	want := dump(t, now)
	if !strings.Contains(want, `["p","q"]`) {
		t.Fatalf("got\n%s", want)
	}
	if got := dump(t, old); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	out, got := copied(t, old)
	if got != want {
		t.Errorf("the output has\n%s\nwant\n%s", got, want)
	}
	if types := schema(t, out); !strings.Contains(types, "(LIST)") || !strings.Contains(types, "(MAP)") {
		t.Errorf("the output has the types\n%s", types)
	}
}

// Arrow writes a row group for an empty part of a table, with columns that stand nowhere.
func TestParquetWithEmptyRowGroups(t *testing.T) {
	var b bytes.Buffer
	if err := parquet.Write(&b, []struct {
		A string `parquet:"a"`
		B bool   `parquet:"b"`
	}{{"x", true}, {"y", false}}); err != nil {
		t.Fatal(err)
	}
	content := changedFooter(t, b.Bytes(), func(m *format.FileMetaData) {
		empty := format.RowGroup{}
		for _, c := range m.RowGroups[0].Columns {
			c.MetaData = format.ColumnMetaData{Type: c.MetaData.Type, PathInSchema: c.MetaData.PathInSchema, Codec: c.MetaData.Codec}
			empty.Columns = append(empty.Columns, c)
		}
		m.RowGroups = []format.RowGroup{empty, m.RowGroups[0], empty}
	})
	in := open(t, write(t, "t.parquet", content), Options{})
	want := "a|b\nrow 1: x|true\nrow 2: y|false\n"
	if got := dump(t, in); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, got := copied(t, in); got != want {
		t.Errorf("the output has\n%s\nwant\n%s", got, want)
	}
}
