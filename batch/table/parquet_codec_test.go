package table

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
)

// encoded has a column for each encoding.
type encoded struct {
	Plain   string   `parquet:"plain"`
	Dict    string   `parquet:"dict,dict"`
	Same    string   `parquet:"same,dict"`
	Delta   int64    `parquet:"delta,delta"`
	Small   int32    `parquet:"small,delta"`
	Lengths string   `parquet:"lengths,delta"`
	Split   float64  `parquet:"split,split"`
	Yes     bool     `parquet:"yes"`
	Maybe   *int64   `parquet:"maybe,optional"`
	Many    []string `parquet:"many,dict"`
}

// TestParquetCodecs reads files of all codecs and encodings.
func TestParquetCodecs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	rows := make([]encoded, 20_000)
	for i := range rows {
		text := strings.Repeat(fmt.Sprint(r.IntN(100)), r.IntN(8))
		rows[i] = encoded{text, text, "same", r.Int64() - r.Int64(), r.Int32(), text, r.Float64(), r.IntN(2) == 0, nil, nil}
		if n := r.Int64N(1000); n < 600 {
			rows[i].Maybe = &n
		}
		for range r.IntN(3) {
			rows[i].Many = append(rows[i].Many, text)
		}
	}
	for _, codec := range []compress.Codec{
		&parquet.Uncompressed, &parquet.Snappy, &parquet.Gzip, &parquet.Zstd, &parquet.Lz4Raw, &parquet.Brotli,
	} {
		var b bytes.Buffer
		err := parquet.Write(&b, rows, parquet.Compression(codec), parquet.PageBufferSize(1<<15),
			parquet.MaxRowsPerRowGroup(9000))
		if err != nil {
			t.Fatal(err)
		}
		path := write(t, "t.parquet", b.String())
		n := 0
		for row, err := range open(t, path, Options{}).Rows(t.Context()) {
			if err != nil {
				t.Fatalf("%s: %v", codec, err)
			}
			want := rows[n]
			if row.Cells[0] != want.Plain || row.Cells[1] != want.Dict || row.Cells[3] != fmt.Sprint(want.Delta) ||
				row.Cells[4] != fmt.Sprint(want.Small) || row.Cells[5] != want.Lengths || row.Null(8) != (want.Maybe == nil) ||
				strings.Count(row.Cells[9], `"`) != 2*len(want.Many) {
				t.Fatalf("%s, row %d: got %q, want %+v", codec, n, row.Cells, want)
			}
			n++
		}
		if n != len(rows) {
			t.Errorf("%s: %d rows", codec, n)
		}
	}
}
