package table

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/format"
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

// TestParquetCodecs reads files of all codecs and encodings: what the checks of pages must not refuse.
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
		if codec == compress.Codec(&parquet.Brotli) {
			if err := firstError(t, path, Options{}); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "BROTLI") {
				t.Errorf("Brotli: %v", err)
			}
			continue
		}
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

// TestBooleanRuns checks that runs of booleans, which the library reads wrongly, are refused.
func TestBooleanRuns(t *testing.T) {
	if err := guardValues([]byte{2, 0, 0, 0, 16, 1}, format.RLE, 8, parquet.BooleanType); !errors.Is(err, ErrFormat) {
		t.Errorf("got %v, want %v", err, ErrFormat)
	}
}

// TestUnpackClaims checks compressed data that claim more than they have, or unpack to more than the page says.
func TestUnpackClaims(t *testing.T) {
	zeros := make([]byte, 1<<20)
	for _, codec := range []compress.Codec{&parquet.Snappy, &parquet.Gzip, &parquet.Zstd, &parquet.Lz4Raw} {
		packed, err := codec.Encode(nil, zeros)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := unpack(codec.CompressionCodec(), packed, 1<<20); err != nil || len(out) != 1<<20 {
			t.Errorf("%s: %d bytes, %v", codec, len(out), err)
		}
		for _, size := range []int64{0, 1, 1<<20 - 1, 1<<20 + 1} {
			if _, err := unpack(codec.CompressionCodec(), packed, size); !errors.Is(err, errParquet) {
				t.Errorf("%s, %d bytes: %v", codec, size, err)
			}
		}
		for at := range packed[:min(len(packed), 64)] {
			broken := bytes.Clone(packed)
			broken[at] ^= 0x55
			_, _ = unpack(codec.CompressionCodec(), broken, 1<<20) // returns, and reserves no more than it may
		}
	}
}
