package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	driver "modernc.org/sqlite"

	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/internal/sqlstore"
)

// dialect is how the file keeps what SQLite has no type for: times as microseconds since 1970, names as lines.
var dialect = sqlstore.Dialect{
	User: "user", Agent: "agent", Run: "run",
	ByVersion: "memories INDEXED BY memories_version",
	WithIDs:   "id IN (SELECT value FROM json_each($1))",
	List: func(ids []string) any {
		raw, _ := json.Marshal(ids) // never fails: they are strings
		return string(raw)
	},
	Time:      func(t time.Time) any { return t.UnixMicro() },
	Names:     func(names []string) any { return strings.Join(names, "\n") }, // which has no line feeds in it
	ReadNames: func(names *[]string) any { return lines{names} },
}

// lines reads names.
type lines struct{ to *[]string }

// Scan implements sql.Scanner.
func (l lines) Scan(src any) error {
	if text, _ := src.(string); text != "" {
		*l.to = strings.Split(text, "\n")
	}
	return nil
}

// conn is a database or a transaction.
type conn struct {
	sql interface {
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	}
}

// Each implements sqlstore.Conn.
func (c conn) Each(ctx context.Context, query string, args []any, f func(sqlstore.Row) (bool, error)) error {
	rows, err := c.sql.QueryContext(ctx, query, args...)
	if err != nil {
		return failed(err)
	}
	defer rows.Close()
	return failed(sqlstore.Each(rows, f))
}

// Exec implements sqlstore.Conn.
func (c conn) Exec(ctx context.Context, query string, args ...any) (int, error) {
	result, err := c.sql.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, failed(err)
	}
	n, err := result.RowsAffected()
	return int(n), failed(err)
}

// read calls f while the log is not emptied, if whole in a transaction.
func (b *Backend) read(ctx context.Context, whole bool, f func(sqlstore.Conn) error) error {
	b.readers.RLock()
	defer b.readers.RUnlock()
	if !whole {
		return f(conn{b.reader})
	}
	inner, err := b.reader.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return failed(err)
	}
	defer func() { _ = inner.Rollback() }() // it has nothing to commit
	return f(conn{inner})
}

// failed says that an error is of this package; nil stays nil.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("sqlite: %w", err)
}

// Codes of SQLite for a disk without room.
const (
	codeFull    = 13             // SQLITE_FULL
	codeShmSize = 10 | (19 << 8) // SQLITE_IOERR_SHMSIZE: no room for what readers and writers share
)

// classify wraps an error for a disk without room with [memory.ErrFull].
func classify(err error) error {
	if err == nil || errors.Is(err, memory.ErrFull) {
		return err
	}
	failed, ok := errors.AsType[*driver.Error](err)
	if ok && (failed.Code()&0xff == codeFull || failed.Code() == codeShmSize) || errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w: %w", memory.ErrFull, err)
	}
	return err
}
