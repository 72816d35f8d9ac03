package table

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// Open opens a table and reads as much of it as tells its columns: the header of CSV and TSV, the footer of Parquet, all of JSON lines.
//
// source is a path, "-" for standard input, or, with Options.Query, a path of an SQLite file or a URL that begins with postgres:// or
// postgresql:// (with Options.Format Postgres, anything that pgx reads). Standard input and the result of a query are read to
// their end and kept in a temporary file until [Table.Close].
//
// An error about the source is an [*Error]; another is about the options, or that of the context.
func Open(ctx context.Context, source string, opts Options) (*Table, error) {
	opts, err := opts.resolve()
	if err != nil {
		return nil, err
	}
	t := &Table{source: source, opts: opts, Format: opts.Format}
	if err := t.open(ctx, source); err != nil {
		if stopped := ctx.Err(); stopped != nil {
			err = fmt.Errorf("%s: %w", t.source, stopped)
		}
		_ = t.Close() // the first error is the one to know
		return nil, t.fail("", err)
	}
	return t, nil
}

func (t *Table) open(ctx context.Context, source string) (err error) {
	lower := strings.ToLower(source)
	url := strings.HasPrefix(lower, "postgres://") || strings.HasPrefix(lower, "postgresql://")
	if url || t.Format == Postgres {
		t.source = "postgres"
		if t.Format == "" {
			t.Format = Postgres
		}
	}
	switch {
	case t.Format != "":
	case source == "-":
		return fmt.Errorf("%w: set the format of standard input", ErrFormat)
	default:
		if t.Format, _, err = formatOf(source); err != nil && t.opts.Query == "" {
			return err
		}
		if t.opts.Query != "" && err != nil {
			t.Format = SQLite
		}
	}
	if database := t.Format == SQLite || t.Format == Postgres; database != (t.opts.Query != "") {
		if database {
			return fmt.Errorf("%w: a database needs a query", ErrQuery)
		}
		return fmt.Errorf("%w: %s files are read without a query", ErrQuery, t.Format)
	}
	if t.Format == Postgres {
		return openPostgres(ctx, t, source)
	}
	if source == "-" {
		t.source = "standard input"
		if t.Format == SQLite {
			return fmt.Errorf("%w: a database cannot be read from standard input", ErrFormat)
		}
		t.file, err = spill(t.opts.TempDir, func(w io.Writer) error {
			_, err := io.Copy(w, &until{ctx, t.opts.Stdin})
			return err
		})
		if err == nil && t.file.info.Size() == 0 {
			err = fmt.Errorf("%w: it is empty", ErrInvalid)
		}
	} else {
		t.file, err = openFile(source)
	}
	if err != nil {
		return err
	}
	if t.file.temp == nil {
		t.input = t.file.info
	}
	switch t.Format {
	case CSV, TSV:
		return openCSV(ctx, t)
	case Parquet:
		return openParquet(ctx, t)
	case SQLite:
		return openSQLite(ctx, t)
	case OpenAI:
		return openOpenAI(ctx, t)
	}
	if t.opts.Format == "" && looksLikeOpenAI(ctx, t) {
		t.Format = OpenAI
		return openOpenAI(ctx, t)
	}
	return openJSONL(ctx, t)
}
