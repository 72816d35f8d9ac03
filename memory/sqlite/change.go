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
	return b.forget(ctx, t.removed)
}

// Reset empties all tables.
func (b *Backend) Reset(ctx context.Context) error {
	return b.Change(ctx, func(t memory.Tx) error {
		inner := t.(*tx)
		inner.removed = true
		for _, table := range everything {
			if err := inner.exec(ctx, "DELETE FROM "+table); err != nil {
				return err
			}
		}
		return nil
	})
}

// forget empties the log, whose frames hold earlier copies of pages, if something was removed now or was removed
// while somebody else was reading.
func (b *Backend) forget(ctx context.Context, removed bool) error {
	b.mu.Lock()
	b.stale = b.stale || removed
	stale := b.stale
	b.mu.Unlock()
	if !stale {
		return nil
	}
	b.readers.Lock()
	defer b.readers.Unlock()
	var busy, frames, moved int
	err := b.writer.QueryRowContext(context.WithoutCancel(ctx), "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved)
	if err != nil {
		return fmt.Errorf("sqlite: the change is stored, but the log still holds what it removed: %w", err)
	}
	b.mu.Lock()
	b.stale = busy != 0
	b.mu.Unlock()
	return nil
}
