package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/internal/sqlstore"
)

// tx is a transaction that notes which texts it removes.
type tx struct {
	*sqlstore.Tx
	left leftovers
}

// Change runs f in a transaction of the only connection that writes.
func (b *Backend) Change(ctx context.Context, f func(tx memory.Tx) error) error {
	return b.change(ctx, func(t *tx) error { return f(t) })
}

func (b *Backend) change(ctx context.Context, f func(t *tx) error) error {
	return classify(b.commit(ctx, f))
}

func (b *Backend) commit(ctx context.Context, f func(t *tx) error) error {
	inner, err := b.writer.BeginTx(ctx, nil)
	if err != nil {
		return failed(err)
	}
	defer func() { _ = inner.Rollback() }() // does nothing after a commit
	t := &tx{Tx: &sqlstore.Tx{Dialect: &dialect, Conn: conn{inner}}}
	t.Erasing = t.note
	if err := f(t); err != nil {
		return err
	}
	if err := inner.Commit(); err != nil {
		return failed(err)
	}
	return b.forget(ctx, t)
}

// Reset empties all tables. On a disk that has no room for that at once, it does so in parts.
func (b *Backend) Reset(ctx context.Context) error {
	err := b.change(ctx, func(t *tx) error {
		for _, table := range everything {
			if _, err := t.Exec(ctx, "DELETE FROM "+table); err != nil {
				return err
			}
		}
		return t.restart(ctx)
	})
	if errors.Is(err, memory.ErrFull) && !errors.Is(err, memory.ErrNotErased) {
		return b.resetInParts(ctx)
	}
	return err
}

// restart ends a reset, after which the file is rewritten.
func (t *tx) restart(ctx context.Context) error {
	t.Erased, t.left.many = true, true
	return t.Restart(ctx)
}

// rowsAtOnce is how many rows a part of a reset removes: its pages must fit where a whole reset's do not.
const rowsAtOnce = 100

// resetInParts removes all rows, some at a time, and returns the room that each part took before the next.
func (b *Backend) resetInParts(ctx context.Context) error {
	for _, table := range everything {
		some := fmt.Sprintf("DELETE FROM %s WHERE rowid IN (SELECT rowid FROM %[1]s LIMIT %d)", table, rowsAtOnce)
		for rows := 1; rows > 0; {
			err := b.change(ctx, func(t *tx) (err error) {
				t.Erased = true
				rows, err = t.Exec(ctx, some)
				return err
			})
			if err != nil && !errors.Is(err, memory.ErrNotErased) {
				return err
			}
		}
	}
	return b.change(ctx, func(t *tx) error { return t.restart(ctx) })
}
