package table

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// withFooter returns a file with another footer.
func withFooter(whole, footer []byte) string {
	data := whole[:len(whole)-8-int(binary.LittleEndian.Uint32(whole[len(whole)-8:]))]
	return string(data) + string(footer) + string(binary.LittleEndian.AppendUint32(nil, uint32(len(footer)))) + "PAR1"
}

// changedFooter returns a file with a change in its metadata.
func changedFooter(t *testing.T, whole []byte, change func(*format.FileMetaData)) string {
	t.Helper()
	n := int(binary.LittleEndian.Uint32(whole[len(whole)-8:]))
	var m format.FileMetaData
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), whole[len(whole)-8-n:len(whole)-8], &m); err != nil {
		t.Fatal(err)
	}
	change(&m)
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), m)
	if err != nil {
		t.Fatal(err)
	}
	return withFooter(whole, footer)
}

// TestBadParquet checks that what is wrong with a file is an error that says where, and takes little memory.
func TestBadParquet(t *testing.T) {
	type record struct {
		A string `parquet:"a"`
		B string `parquet:"b,snappy"`
	}
	file := func(rows ...record) []byte {
		var b bytes.Buffer
		if err := parquet.Write(&b, rows, parquet.MaxRowsPerRowGroup(2)); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	good := file(record{"1", "2"}, record{"3", "4"}, record{"5", "6"})
	var booleans bytes.Buffer
	if err := parquet.Write(&booleans, []struct {
		Yes bool `parquet:"yes"`
	}{{true}, {true}}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, content string
		cause         error
		want          []string
	}{
		{"no Parquet", "a,b\n1,2\n3,4\n5,6\n", ErrInvalid, []string{"cut off or none"}},
		{"cut off", string(good[:len(good)-20]), ErrInvalid, []string{"cut off or none"}},
		{
			"a byte is not UTF-8", string(file(record{"1", "2"}, record{"3", "4"}, record{"5", "x\xff"})), ErrInvalid,
			[]string{"row 3", `column "b"`, `"x\xff"`, "not UTF-8"},
		},
		{
			"a large cell", string(file(record{"1", "2"}, record{strings.Repeat("x", 2000), "4"})), ErrTooLarge,
			[]string{"row 2", `column "a"`, "2000 bytes", "MaxCell"},
		},
		{"a footer larger than the file", string(good[:len(good)-8]) + "\xff\xff\xff\x00PAR1", ErrInvalid, []string{"metadata of 16777215 bytes"}},
		{
			"rows that are not there", changedFooter(t, good, func(m *format.FileMetaData) { m.RowGroups[1].NumRows++ }), ErrInvalid,
			[]string{"row 4", "1 rows of 2"},
		},
		{"booleans in runs", changedFooter(t, booleans.Bytes(), func(m *format.FileMetaData) {
			m.RowGroups[0].Columns[0].MetaData.Encoding = []format.Encoding{format.RLE}
		}), ErrFormat, []string{`column "yes"`, "plain encoding"}},
		{"no file of its columns", changedFooter(t, good, func(m *format.FileMetaData) {
			m.RowGroups[0].Columns = nil
		}), ErrInvalid, nil},
		{"an empty name", changedFooter(t, good, func(m *format.FileMetaData) { m.Schema[1].Name = "" }), ErrInvalid, []string{"column 1 is empty"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := write(t, "t.parquet", test.content)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := firstError(t, path, Options{MaxCell: 1000})
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > 128<<20 {
				t.Errorf("%d bytes of memory", used)
			}
			if !errors.Is(err, test.cause) {
				t.Fatalf("got %v, want %v", err, test.cause)
			}
			for _, want := range append(test.want, path) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in %q", want, err)
				}
			}
		})
	}
}

// TestHugeParquetCell checks that a cell of 100 MB is refused by the check of the table, with its place.
func TestHugeParquetCell(t *testing.T) {
	var b bytes.Buffer
	rows := []struct {
		A string `parquet:"a,zstd"`
	}{{"x"}, {strings.Repeat("x", 100<<20)}}
	if err := parquet.Write(&b, rows, parquet.SkipPageBounds("a")); err != nil {
		t.Fatal(err)
	}
	err := firstError(t, write(t, "t.parquet", b.String()), Options{})
	if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), `row 2: column "a"`) {
		t.Errorf("got %.300v", err)
	}
}
