package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/ragpilot/ragpilot/memory"
)

// Change runs f in a transaction of the only connection that writes.
func (b *Backend) Change(ctx context.Context, f func(tx memory.Tx) error) error {
	return classify(b.change(ctx, f))
}

func (b *Backend) change(ctx context.Context, f func(tx memory.Tx) error) error {
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

// Reset empties all tables. On a disk that has no room for that at once, it does so in parts.
func (b *Backend) Reset(ctx context.Context) error {
	err := b.Change(ctx, func(t memory.Tx) error {
		inner := t.(*tx)
		inner.removed, inner.left.many = true, true
		for _, table := range everything {
			if err := inner.exec(ctx, "DELETE FROM "+table); err != nil {
				return err
			}
		}
		return inner.restart(ctx)
	})
	if errors.Is(err, memory.ErrFull) && !errors.Is(err, memory.ErrNotErased) {
		return b.resetInParts(ctx)
	}
	return err
}
