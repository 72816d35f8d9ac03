package table

import (
	"bufio"
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
	size := int32(1 << 30)
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0x07} // 2 GiB
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
		{"a footer of 4 GiB", string(good[:len(good)-8]) + "\xff\xff\xff\xffPAR1", ErrTooLarge, []string{"metadata of 4294967295 bytes"}},
		{"a list of 2 billion", withFooter(good, append([]byte{0x15, 2, 0x19, 0xfc}, huge...)), ErrInvalid, []string{"sizes"}},
		{"a text of 2 GiB", withFooter(good, append([]byte{0x15, 2, 0x19, 0x1c, 0x48}, huge...)), ErrInvalid, []string{"sizes"}},
		{"deep structs", withFooter(good, bytes.Repeat([]byte{0xfc}, 1<<20)), ErrInvalid, []string{"sizes"}},
		{"large values", changedFooter(t, good, func(m *format.FileMetaData) { m.Schema[1].TypeLength = &size }), ErrInvalid, []string{"1073741824"}},
		{"many children", changedFooter(t, good, func(m *format.FileMetaData) { m.Schema[0].NumChildren = size }), ErrInvalid, []string{"1073741824"}},
		{"another compression", changedFooter(t, good, func(m *format.FileMetaData) {
			m.RowGroups[1].Columns[1].MetaData.Codec = format.Uncompressed
		}), ErrFormat, []string{"row group 2, from row 3", `column "b"`, "SNAPPY"}},
		{"values that are not there", changedFooter(t, good, func(m *format.FileMetaData) {
			m.RowGroups[0].Columns[0].MetaData.NumValues++
		}), ErrInvalid, []string{"row group 1, from row 1", `column "a"`, "2 values of 3"}},
		{
			"rows that are not there", changedFooter(t, good, func(m *format.FileMetaData) { m.RowGroups[1].NumRows++ }), ErrInvalid,
			[]string{"row 4", "1 rows of 2"},
		},
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

// TestThriftSkips checks that fields the format has not are passed over, and that their sizes are checked.
func TestThriftSkips(t *testing.T) {
	for name, test := range map[string]struct {
		data string
		ok   bool
	}{
		"a list of lists":      {"\x15\x02\x09\xc8\x01\x29\x12\x01\x12\x02\x00", true},
		"a list of many lists": {"\x15\x02\x09\xc8\x01\xf9\xff\xff\x7f\x00", false},
		"a map":                {"\x15\x02\x0b\xc8\x01\x00\x00", false},
	} {
		var h format.PageHeader
		_, err := decodeThrift(bufio.NewReader(strings.NewReader(test.data)), int64(len(test.data)), &h)
		if sizes := errors.Is(err, errThrift); sizes == test.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWrongCounts checks that a page is refused whose counts are wrong: the library would wait for values that are not there.
func TestWrongCounts(t *testing.T) {
	some := int64(7)
	var b bytes.Buffer
	if err := parquet.Write(&b, []struct {
		A *int64 `parquet:"a,optional"`
	}{{&some}, {}, {&some}}); err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	page := b.Bytes()[file.Metadata().RowGroups[0].Columns[0].MetaData.DataPageOffset:]
	for name, change := range map[string]func(*format.PageHeader, []byte) []byte{
		"right":         func(_ *format.PageHeader, data []byte) []byte { return data },
		"NULLs":         func(h *format.PageHeader, data []byte) []byte { h.DataPageHeaderV2.NumNulls = 0; return data },
		"values":        func(h *format.PageHeader, data []byte) []byte { h.DataPageHeaderV2.NumValues = 1000; return data },
		"a value short": func(_ *format.PageHeader, data []byte) []byte { return data[:len(data)-1] },
	} {
		var h format.PageHeader
		n, err := decodeThrift(bytes.NewReader(page), int64(len(page)), &h)
		if err != nil {
			t.Fatal(err)
		}
		data := change(&h, page[n:n+int64(h.CompressedPageSize)])
		_, err = guardPage(&h, data, format.Uncompressed, file.Root().Column("a"))
		if right := name == "right"; right != (err == nil) || !right && !errors.Is(err, errParquet) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
