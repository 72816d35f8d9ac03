package table

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/ragpilot/ragpilot/internal/testkit"
)

type parquetRecord struct {
	Name  string         `parquet:"name,dict"`
	Big   int64          `parquet:"big,delta"`
	Small uint32         `parquet:"small"`
	Real  float64        `parquet:"real"`
	Yes   bool           `parquet:"yes"`
	Money int64          `parquet:"money,decimal(2:18)"`
	When  time.Time      `parquet:"when,timestamp(microsecond)"`
	Day   int32          `parquet:"day,date"`
	ID    [16]byte       `parquet:"id,uuid"`
	Maybe *string        `parquet:"maybe,optional,zstd"`
	List  []string       `parquet:"alist,list"`
	Tags  []int32        `parquet:"tags"`
	Inner *parquetNested `parquet:"inner,optional"`
	Delta string         `parquet:"text,delta,snappy"`
}

type parquetNested struct {
	A string  `parquet:"a"`
	B []int64 `parquet:"b"`
}

// parquetBytes returns a file with such rows.
func parquetBytes(t testing.TB, n int) []byte {
	t.Helper()
	some := "x"
	rows := make([]parquetRecord, n)
	for i := range rows {
		rows[i] = parquetRecord{
			Name: "é\n", Big: 9007199254740993, Small: 4294967295, Real: 0.1, Yes: true, Money: -5,
			When: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), Day: -1, ID: [16]byte{15: 1}, Delta: "same",
		}
		if i%2 == 1 {
			rows[i].Maybe, rows[i].List, rows[i].Tags = &some, []string{"p", "q"}, []int32{1, 2}
			rows[i].Inner = &parquetNested{A: "\"", B: []int64{3}}
		}
	}
	var b bytes.Buffer
	if err := parquet.Write(&b, rows); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const parquetHead = "name|big|small|real|yes|money|when|day|id|maybe|alist|tags|inner|text"

func TestReadParquet(t *testing.T) {
	table := open(t, write(t, "t.parquet", string(parquetBytes(t, 2))), Options{})
	same := "é\n|9007199254740993|4294967295|0.1|true|-0.05|2026-01-02T03:04:05.000006Z|1969-12-31|00000000-0000-0000-0000-000000000001|"
	want := parquetHead + "\nrow 1: " + same + "∅|[]|[]|∅|same\nrow 2: " + same + `x|["p","q"]|[1,2]|{"a":"\"","b":[3]}|same` + "\n"
	for range 2 {
		if got := dump(t, table); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// schema returns the columns of a file with their types.
func schema(t *testing.T, in *Table) string {
	t.Helper()
	f, err := os.Open(in.source)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	file, err := parquet.OpenFile(f, in.file.info.Size())
	if err != nil {
		t.Fatal(err)
	}
	return file.Schema().String()
}

func TestWriteParquet(t *testing.T) {
	in, path := open(t, write(t, "t.parquet", string(parquetBytes(t, 1000))), Options{}), filepath.Join(t.TempDir(), "o.parquet")
	if err := annotate(t, in, path, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	out := open(t, path, Options{})
	before, after := schema(t, in), schema(t, out)
	if before = strings.Replace(before, "\n}", "\n\toptional binary answer (STRING);\n}", 1); after != before {
		t.Errorf("got types\n%s\nwant\n%s", after, before)
	}
	want := strings.Split(dump(t, in), "\n")
	for i, line := range strings.Split(dump(t, out), "\n") {
		line = strings.NewReplacer("|answer", "", `|yes, "so"`, "", "|same|∅", "|same").Replace(line)
		if line != want[i] {
			t.Fatalf("got\n%s\nwant\n%s", line, want[i])
		}
	}
	var first [1]struct {
		Answer *string `parquet:"answer,optional"`
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := parquet.NewGenericReader[struct {
		Answer *string `parquet:"answer,optional"`
	}](f)
	defer r.Close()
	if _, err := r.Read(first[:]); err != nil || first[0].Answer == nil || *first[0].Answer != `yes, "so"` {
		t.Errorf("got %v, %v", first[0].Answer, err)
	}
}

// TestCutParquet cuts a file off: there is an error.
func TestCutParquet(t *testing.T) {
	whole := parquetBytes(t, 4)
	for at := 1; at < len(whole); at += 1 + at/20 {
		if err := firstError(t, write(t, "t.parquet", string(whole[:at])), Options{}); !errors.Is(err, ErrInvalid) {
			t.Fatalf("cut off at %d of %d: %v", at, len(whole), err)
		}
	}
}

// TestWriteLargeCells reads a file back whose cells are many times as large as a footer may be.
func TestWriteLargeCells(t *testing.T) {
	testkit.NotUnderRace(t)
	cell := strings.Repeat("x", 1<<20)
	rows := make([]struct{ A string }, 100)
	for i := range rows {
		rows[i].A = cell
	}
	var b bytes.Buffer
	if err := parquet.Write(&b, rows, parquet.SkipPageBounds("A")); err != nil {
		t.Fatal(err)
	}
	in, path := open(t, write(t, "t.parquet", b.String()), Options{}), filepath.Join(t.TempDir(), "o.parquet")
	w, err := Create(path, in, []string{"answer"}, WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for row, err := range in.Rows(t.Context()) {
		if err := errors.Join(err, w.Write(row, Text(cell))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	if s, err := open(t, path, Options{}).Check(t.Context()); err != nil || s.Bytes != 200<<20 {
		t.Errorf("%d bytes, %v", s.Bytes, err)
	}
}
