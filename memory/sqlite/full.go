package sqlite

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	driver "modernc.org/sqlite"

	"github.com/ragpilot/ragpilot/memory"
)

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

// rowsAtOnce is how many rows a part of a reset removes: its pages must fit where a whole reset's do not.
const rowsAtOnce = 100

// resetInParts removes all rows, some at a time, and returns the room that each part took before the next.
func (b *Backend) resetInParts(ctx context.Context) error {
	for _, table := range everything {
		for rows := 1; rows > 0; {
			err := b.Change(ctx, func(t memory.Tx) (err error) {
				inner := t.(*tx)
				inner.removed = true
				rows, err = inner.count(ctx, fmt.Sprintf("DELETE FROM %s WHERE rowid IN (SELECT rowid FROM %[1]s LIMIT %d)", table, rowsAtOnce))
				return err
			})
			if err != nil && !errors.Is(err, memory.ErrNotErased) {
				return err
			}
		}
	}
	return b.Change(ctx, func(t memory.Tx) error {
		inner := t.(*tx)
		inner.removed, inner.left.many = true, true
		return inner.restart(ctx)
	})
}
