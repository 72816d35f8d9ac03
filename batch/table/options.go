package table

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Format is how a table is stored.
type Format string

// The formats of tables.
const (
	CSV      Format = "csv"      // RFC 4180, with a header
	TSV      Format = "tsv"      // the same with tabs
	JSONL    Format = "jsonl"    // one JSON object a line
	OpenAI   Format = "openai"   // the input of OpenAI's batch API
	Parquet  Format = "parquet"  // Apache Parquet
	SQLite   Format = "sqlite"   // a query on a file of SQLite
	Postgres Format = "postgres" // a query on PostgreSQL
)

// Options configure [Open]; the zero Options are the usual ones.
type Options struct {
	// Format is the format of the source; empty: by its name. It must be set for standard input.
	Format Format
	// Query is the SQL query whose result is the table, for databases only. It must be one statement that only reads.
	Query string
	// NoQuotes makes quotes in CSV and TSV ordinary characters, as in files of MySQL.
	NoQuotes bool
	// URLs are the values of url that an OpenAI batch file may have; empty: /v1/chat/completions and /v1/completions.
	URLs []string
	// MaxCell bounds the bytes of a cell; 0: 1 MiB.
	MaxCell int
	// MaxRow bounds the bytes of a row, and of a line of a file of lines; 0: 16 MiB.
	MaxRow int
	// MaxColumns bounds the number of columns; 0: 10,000.
	MaxColumns int
	// TempDir is the folder for snapshots of standard input and of query results; empty: that of the system.
	TempDir string
	// Stdin is what the source "-" reads; nil: standard input.
	Stdin io.Reader
}

// resolve fills in the defaults.
func (o Options) resolve() (Options, error) {
	for _, f := range []struct {
		name  string
		value *int
		usual int
	}{{"MaxCell", &o.MaxCell, 1 << 20}, {"MaxRow", &o.MaxRow, 16 << 20}, {"MaxColumns", &o.MaxColumns, 10_000}} {
		if *f.value < 0 {
			return o, fmt.Errorf("table: Options.%s = %d, want at least 0", f.name, *f.value)
		}
		*f.value = cmp.Or(*f.value, f.usual)
	}
	if len(o.URLs) == 0 {
		o.URLs = []string{"/v1/chat/completions", "/v1/completions"}
	}
	if o.Stdin == nil {
		o.Stdin = os.Stdin
	}
	switch o.Format {
	case "", CSV, TSV, JSONL, OpenAI, Parquet, SQLite, Postgres:
		return o, nil
	}
	return o, fmt.Errorf("table: Options.Format = %q: %w, want csv, tsv, jsonl, openai, parquet, sqlite or postgres", o.Format, ErrFormat)
}

// extensions are the formats by the ends of names.
var extensions = map[string]Format{
	".csv": CSV, ".tsv": TSV, ".tab": TSV, ".jsonl": JSONL, ".ndjson": JSONL, ".parquet": Parquet, ".pq": Parquet,
	".db": SQLite, ".sqlite": SQLite, ".sqlite3": SQLite,
}

// formatOf returns the format that a name stands for. packed reports whether it ends in .gz.
func formatOf(name string) (f Format, packed bool, err error) {
	base, packed := strings.CutSuffix(strings.ToLower(filepath.Base(name)), ".gz")
	ext := filepath.Ext(base)
	f, ok := extensions[ext]
	if !ok {
		return "", packed, fmt.Errorf("%w: the ending %q is unknown; use .csv, .tsv, .jsonl or .parquet, or set the format", ErrFormat, ext)
	}
	if packed && (f == Parquet || f == SQLite) {
		return "", packed, fmt.Errorf("%w: %s files cannot be read compressed", ErrFormat, f)
	}
	return f, packed, nil
}
