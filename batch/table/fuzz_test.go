package table

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// fuzzed reads bytes as a format. An error is one of this package and has the source.
func fuzzed(t testing.TB, f Format, data []byte) [][]string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	table, err := Open(t.Context(), path, Options{Format: f, MaxCell: 1 << 12, MaxRow: 1 << 14})
	if err == nil {
		defer table.Close()
		rows = append(rows, table.Columns)
		for row, problem := range table.Rows(t.Context()) {
			if err = problem; err == nil {
				rows = append(rows, slices.Clone(row.Cells))
			}
		}
	}
	if err == nil {
		return rows
	}
	if e, ok := errors.AsType[*Error](err); !ok || e.Source != path {
		t.Fatalf("an error without a source: %v", err)
	}
	if !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrFormat) {
		t.Fatalf("an error without a cause: %v", err)
	}
	return nil
}

// FuzzCSV compares with the standard library, which reads \r\n in fields as \n and accepts rows of all lengths.
func FuzzCSV(f *testing.F) {
	for _, seed := range []string{"a,b\n1,\"2\r\n\"\"\"\r\n", "a\n\n\"\"\n", "a,b\n\"", "\xef\xbb\xbfa\n1", "a\r\n1\r"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rows := fuzzed(t, CSV, data)
		if len(rows) == 0 || len(rows[0]) == 1 || bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
			return
		}
		want, err := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))).ReadAll()
		if err != nil {
			t.Fatalf("read what is refused: %v", err)
		}
		for _, row := range rows {
			for i := range row {
				row[i] = strings.ReplaceAll(row[i], "\r\n", "\n")
			}
		}
		if !slices.EqualFunc(rows, want, slices.Equal) {
			t.Fatalf("got %q, want %q", rows, want)
		}
	})
}

func FuzzTSV(f *testing.F) {
	f.Add([]byte("a\tb\n1\t\"2\t\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) { fuzzed(t, TSV, data) })
}

func FuzzJSONL(f *testing.F) {
	for _, seed := range []string{`{"a":"\ud83d\ude00","b":[1]}` + "\n{}", `{"\ud83d":1}`, `{"a":{"a":1},"a":2}`, `{"a":"\\u0000\u0000"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) { fuzzed(t, JSONL, data) })
}

func FuzzOpenAI(f *testing.F) {
	f.Add([]byte(goodLine))
	f.Fuzz(func(t *testing.T, data []byte) { fuzzed(t, OpenAI, data) })
}

// TestRoundTrip writes any cells, and reads the same ones.
func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	cell := rapid.StringOf(rapid.OneOf(rapid.SampledFrom([]rune("\",\t\r\n ab\\é\u2028")), rapid.Rune()).Filter(func(r rune) bool {
		return r != 0 && (r < 0xd800 || r > 0xdfff)
	}))
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3).Draw(t, "columns")
		rows := rapid.SliceOfN(rapid.SliceOfN(cell, n, n), 0, 5).Draw(t, "rows")
		from := rapid.SampledFrom([]string{"in.csv", "in.tsv"}).Draw(t, "from")
		to := rapid.SampledFrom([]string{"out.csv", "out.tsv", "out.jsonl"}).Draw(t, "to")
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		if strings.HasSuffix(from, ".tsv") {
			w.Comma = '\t'
		}
		_ = w.Write([]string{"c1", "c2", "c3"}[:n])
		_ = w.WriteAll(rows)
		path, out := filepath.Join(dir, from), filepath.Join(dir, to)
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		table, err := Open(t.Context(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer table.Close()
		more := cell.Draw(t, "answer")
		writer, err := Create(out, table, []string{"answer"}, WriteOptions{Overwrite: true})
		if err != nil {
			t.Fatal(err)
		}
		defer writer.Close()
		for row, err := range table.Rows(t.Context()) {
			if err == nil && !slices.Equal(row.Cells, rows[row.Number]) {
				t.Fatalf("read %q, want %q", row.Cells, rows[row.Number])
			}
			if err = errors.Join(err, writer.Write(row, Text(more))); err != nil {
				t.Fatal(err)
			}
		}
		if err := writer.Commit(); err != nil {
			t.Fatal(err)
		}
		if len(rows) == 0 && strings.HasSuffix(to, ".jsonl") {
			return // a file without lines has no columns
		}
		back, err := Open(t.Context(), out, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer back.Close()
		n = 0
		for row, err := range back.Rows(t.Context()) {
			if want := append(slices.Clone(rows[n]), more); err != nil || !slices.Equal(row.Cells, want) {
				t.Fatalf("read %q, %v, want %q", row.Cells, err, want)
			}
			n++
		}
		if n != len(rows) {
			t.Fatalf("%d rows, want %d", n, len(rows))
		}
	})
}

func BenchmarkCSV(b *testing.B) {
	path := filepath.Join(b.TempDir(), "t.csv")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	const rows = 1_000_000
	_, _ = io.WriteString(f, "a,b,c,d,e,f,g,h,i,j\n")
	for range rows / 1000 {
		_, _ = io.WriteString(f, strings.Repeat("12345678,some words here,west,2026-01-02,1.25,\"a, b\",ok,yes,category one,last cell\n", 1000))
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	table := open(b, path, Options{})
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for _, err := range table.Rows(b.Context()) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != rows {
			b.Fatal(n)
		}
	}
	b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(0, "ns/op")
}
