package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ragpilot/ragpilot/memory/internal/sqlstore"
)

// dialect is how the tables keep times and lists.
var dialect = sqlstore.Dialect{
	User: "user_id", Agent: "agent_id", Run: "run_id",
	ByVersion: "memories",
	WithIDs:   "id = ANY ($1)",
	List:      func(ids []string) any { return ids },
	Time:      func(t time.Time) any { return t },
	Names: func(names []string) any {
		if names == nil {
			return []string{}
		}
		return names
	},
	ReadNames: func(names *[]string) any { return names },
}

// conn is a connection or a transaction.
type conn struct {
	pgx interface {
		Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
		Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error)
	}
}

// Each implements sqlstore.Conn.
func (c conn) Each(ctx context.Context, query string, args []any, f func(sqlstore.Row) (bool, error)) error {
	rows, err := c.pgx.Query(ctx, query, args...)
	if err != nil {
		return wrapped(err)
	}
	defer rows.Close()
	return wrapped(sqlstore.Each(rows, f))
}

// Exec implements sqlstore.Conn.
func (c conn) Exec(ctx context.Context, query string, args ...any) (int, error) {
	tag, err := c.pgx.Exec(ctx, query, args...)
	return int(tag.RowsAffected()), wrapped(err)
}

// read calls f with a connection of its own, if whole in a transaction.
func (b *Backend) read(ctx context.Context, whole bool, f func(sqlstore.Conn) error) error {
	if !whole {
		return b.pool.with(ctx, func(c *pgx.Conn) error { return f(conn{c}) })
	}
	opts := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return b.transaction(ctx, opts, func(inner pgx.Tx) error { return f(conn{inner}) })
}
