package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/internal/sqlstore"
)

// Options configure [Open]; the zero Options are the usual ones.
type Options struct {
	// Schema is the database schema that holds the tables; empty: "ragpilot_memory". It is made if it is not there. Stores
	// in different schemas share nothing.
	Schema string
	// Connections bounds how many connections are open at a time; 0: 4.
	Connections int
}

// Backend is a [memory.Backend] in a database. It is safe for concurrent use.
type Backend struct {
	reading
	pool   *pool
	schema string
	lock   int64 // the advisory lock of the schema
}

var _ memory.Backend = (*Backend)(nil)

// reading has the methods of a Backend that read.
type reading = sqlstore.Reader

// Open connects and makes the tables if they are missing. dsn is what pgx reads: a URL or key=value pairs. Errors wrap those
// of this package and never hold the password.
func Open(ctx context.Context, dsn string, opts Options) (*Backend, error) {
	if opts.Connections < 0 {
		return nil, fmt.Errorf("postgres: Options.Connections = %d, want at least 0", opts.Connections)
	}
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("postgres: open: %w", err) // pgx leaves the password out
	}
	b := &Backend{schema: cmp.Or(opts.Schema, "ragpilot_memory")}
	b.reading = reading{Dialect: &dialect, Read: b.read}
	config.RuntimeParams["search_path"] = pgx.Identifier{b.schema}.Sanitize()
	b.lock = int64(xxh3.HashString("ragpilot memory " + b.schema)) //nolint:gosec // all 64 bits are wanted
	b.pool = newPool(config, cmp.Or(opts.Connections, 4))
	if err := b.create(ctx); err != nil {
		b.pool.close()
		return nil, fmt.Errorf("open schema %q: %w", b.schema, err)
	}
	return b, nil
}

// Close closes the connections; one that is in use when its user is done. It waits for those that were left in the middle of
// a query because a context ended: until the server has heard of it, 15 seconds at most.
func (b *Backend) Close() error {
	b.pool.close()
	return nil
}

// transaction runs f in a transaction, which is rolled back if f fails or panics.
func (b *Backend) transaction(ctx context.Context, opts pgx.TxOptions, f func(pgx.Tx) error) error {
	return b.pool.with(ctx, func(conn *pgx.Conn) error {
		inner, err := conn.BeginTx(ctx, opts)
		if err != nil {
			return wrapped(err)
		}
		if err := f(inner); err != nil {
			// A connection that cannot roll back, for its context has ended, is closed by the pool.
			if undo := inner.Rollback(ctx); undo != nil && !errors.Is(undo, pgx.ErrTxClosed) {
				closeConn(conn)
			}
			return err
		}
		switch err := inner.Commit(ctx); {
		case err == nil:
			return nil
		case opts.AccessMode != pgx.ReadOnly && undecided(err):
			return fmt.Errorf("%w: %w", ErrUnknownOutcome, wrapped(err))
		default:
			return wrapped(err)
		}
	})
}

// Change runs f while no other transaction of the schema runs. If the error wraps [ErrUnknownOutcome] the change may have
// been stored.
func (b *Backend) Change(ctx context.Context, f func(tx memory.Tx) error) error {
	return b.change(ctx, func(t *sqlstore.Tx) error { return f(t) })
}

func (b *Backend) change(ctx context.Context, f func(t *sqlstore.Tx) error) error {
	return b.transaction(ctx, pgx.TxOptions{}, func(inner pgx.Tx) error {
		t := &sqlstore.Tx{Dialect: &dialect, Conn: conn{inner}}
		if _, err := t.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", b.lock); err != nil {
			return err
		}
		return f(t)
	})
}

// Reset empties all tables.
func (b *Backend) Reset(ctx context.Context) error {
	return b.change(ctx, func(t *sqlstore.Tx) error {
		if _, err := t.Exec(ctx, "TRUNCATE space, memories, removed, history, messages"); err != nil {
			return err
		}
		return t.Restart(ctx)
	})
}
