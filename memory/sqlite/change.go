package sqlite

import (
	"context"
	"fmt"

	"github.com/ragpilot/ragpilot/memory"
)

// Change runs f in a transaction of the only connection that writes.
func (b *Backend) Change(ctx context.Context, f func(tx memory.Tx) error) error {
	inner, err := b.writer.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	defer func() { _ = inner.Rollback() }() // does nothing after a commit
	t := &tx{sql: inner}
	if err := f(t); err != nil {
		return err
	}
	if err := inner.Commit(); err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	return b.forget(ctx, t)
}

// Reset empties all tables.
func (b *Backend) Reset(ctx context.Context) error {
	return b.Change(ctx, func(t memory.Tx) error {
		inner := t.(*tx)
		inner.removed, inner.left.many = true, true
		for _, table := range everything {
			if err := inner.exec(ctx, "DELETE FROM "+table); err != nil {
				return err
			}
		}
		return nil
	})
}
