package table

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// openSQLite reads the result of a query into a snapshot.
func openSQLite(ctx context.Context, t *Table) error {
	path := t.file.path
	if err := sqliteHead(path); err != nil {
		return err
	}
	query, err := oneSelect(t.opts.Query)
	if err != nil {
		return t.fail("", err)
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return err
	}
	dsn := "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?mode=ro&_pragma=query_only(1)&_pragma=busy_timeout(5000)"
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrQuery, err)
	}
	defer conn.Close()
	if _, err := driver.Limit(conn, lib.SQLITE_LIMIT_LENGTH, max(t.opts.MaxRow, 1<<20)); err != nil {
		return err
	}
	t.file, err = spill(t.opts.TempDir, func(w io.Writer) error { return t.selectRows(ctx, conn, query, w) })
	t.reader = &snapshot{t}
	return err
}

// sqliteHead returns an error for a file that is no database.
func sqliteHead(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return pathless(err)
	}
	defer f.Close()
	head := make([]byte, 16)
	if _, err := io.ReadFull(f, head); err != nil || string(head) != "SQLite format 3\x00" {
		return fmt.Errorf("%w: it is no SQLite database, so it cannot be queried", ErrFormat)
	}
	return nil
}

// selectRows writes the rows of a query. The query is the source of another one, whose columns have no declared type: the driver would
// change the values of columns that are declared as times or booleans.
func (t *Table) selectRows(ctx context.Context, conn *sql.Conn, query string, w io.Writer) error {
	columns, err := sqliteColumns(ctx, conn, query)
	if err != nil {
		return err
	}
	if err := t.setColumns("", columns); err != nil {
		return err
	}
	var list, plain strings.Builder
	for i := range columns {
		sep := ","
		if i == 0 {
			sep = ""
		}
		fmt.Fprintf(&list, "%sc%d", sep, i)
		fmt.Fprintf(&plain, "%s+c%d", sep, i)
	}
	rows, err := conn.QueryContext(ctx, fmt.Sprintf("WITH ragpilot_query(%s) AS (%s\n) SELECT %s FROM ragpilot_query", &list, query, &plain))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrQuery, err)
	}
	defer rows.Close()
	values, to := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		to[i] = &values[i]
	}
	out := &snapshotWriter{t: t, w: w}
	for rows.Next() {
		if err := rows.Scan(to...); err != nil {
			return err
		}
		for i, v := range values {
			if err := out.value(i, v); err != nil {
				return err
			}
		}
		if err := out.end(); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return t.fail(fmt.Sprintf("row %d", out.rows+1), fmt.Errorf("%w: %w", ErrQuery, err))
	}
	return nil
}

// sqliteColumns returns the names of a query's columns. As the source of another query it is known to be one that reads; that one would
// change names that are there twice, so they are read from the query itself.
func sqliteColumns(ctx context.Context, conn *sql.Conn, query string) (columns []string, err error) {
	for _, text := range []string{"SELECT * FROM (" + query + "\n) LIMIT 0", query} {
		rows, err := conn.QueryContext(ctx, text)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrQuery, err)
		}
		if columns, err = rows.Columns(); err == nil && text != query {
			err = rows.Err()
		}
		if err = errors.Join(err, rows.Close()); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrQuery, err)
		}
	}
	return columns, nil
}

// value adds a value of SQLite to a row.
func (s *snapshotWriter) value(column int, v any) error {
	switch v := v.(type) {
	case nil:
		return s.cell(column, "", true)
	case int64:
		return s.cell(column, fmt.Sprint(v), false)
	case float64:
		return s.cell(column, floatText(v, 64), false)
	case string:
		return s.cell(column, v, false)
	case []byte:
		return s.cell(column, base64.StdEncoding.EncodeToString(v), false)
	}
	return fmt.Errorf("%w: a value of type %T", ErrFormat, v)
}

// oneSelect returns a query without what ends it, if it is one statement that begins as a query does.
func oneSelect(query string) (string, error) {
	end, first := len(query), ""
	for at := 0; at < len(query); {
		n, kind := token(query[at:])
		switch {
		case kind == ' ':
		case kind == ';' && end == len(query):
			end = at
		case kind == ';':
		case end < len(query):
			return "", fmt.Errorf("%w: it has several statements", ErrQuery)
		case first == "":
			first = query[at : at+n]
		}
		at += n
	}
	switch strings.ToUpper(first) {
	case "SELECT", "WITH", "VALUES":
		return query[:end], nil
	case "":
		return "", fmt.Errorf("%w: it is empty", ErrQuery)
	}
	return "", fmt.Errorf("%w: it begins with %s; want SELECT, WITH or VALUES", ErrQuery, shorten(first))
}

// token returns the length and the kind of the first token of an SQL text: ' ' is white space or a comment, ';' ends a statement, 'a' is
// all else.
func token(s string) (n int, kind byte) {
	until := func(end string, from int) int {
		if at := strings.Index(s[from:], end); at >= 0 {
			return from + at + len(end)
		}
		return len(s)
	}
	switch c := s[0]; {
	case unicode.IsSpace(rune(c)):
		return 1, ' '
	case strings.HasPrefix(s, "--"):
		return until("\n", 2), ' '
	case strings.HasPrefix(s, "/*"):
		return until("*/", 2), ' '
	case c == ';':
		return 1, ';'
	case c == '\'' || c == '"' || c == '`': // a doubled quote is two tokens, which makes no difference
		return until(string(c), 1), 'a'
	case c == '[':
		return until("]", 1), 'a'
	case letter(c):
		n = 1
		for n < len(s) && letter(s[n]) {
			n++
		}
		return n, 'a'
	}
	return 1, 'a'
}

func letter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' }
