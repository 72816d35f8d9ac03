package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/internal/sqlstore"
)

// SQLite's secure_delete zeroes a row where it stands. When it had moved the row to another page before, to make room, it left the
// bytes of the old place in the gap between that page's pointers and rows. So a deletion looks in the file for what it has
// removed, and if that is still there rewrites the file, which has no such gaps then.

// leftovers are pieces of what was removed, as they may still stand in the file.
type leftovers struct {
	pieces [][]byte
	many   bool // too many to look for
}

const (
	// pieceBytes is the length of a piece: of a longer text its beginning and its end are looked for, as a part may
	// have been overwritten.
	pieceBytes = 64
	// shortest is the number of bytes below which a piece would be found everywhere.
	shortest = 6
	// maxPieces is the number above which rewriting the file is no more work than looking for all.
	maxPieces = 64
)

// text adds a text.
func (l *leftovers) text(s string) {
	l.add(s)
	l.bound()
}

func (l *leftovers) add(s string) {
	if len(s) < shortest {
		return
	}
	l.pieces = append(l.pieces, []byte(s[:min(len(s), pieceBytes)]))
	if len(s) > pieceBytes {
		l.pieces = append(l.pieces, []byte(s[len(s)-pieceBytes:]))
	}
}

func (l *leftovers) join(other leftovers) {
	l.pieces, l.many = append(l.pieces, other.pieces...), l.many || other.many
	l.bound()
}

func (l *leftovers) bound() {
	if l.many = l.many || len(l.pieces) > maxPieces; l.many {
		l.pieces = nil
	}
}

// stand reports whether any of them is in the file. It reads the file once.
func (l *leftovers) stand(path string) (bool, error) {
	if l.many || len(l.pieces) == 0 {
		return l.many, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	buf, kept := make([]byte, 1<<20), 0
	for {
		n, err := io.ReadFull(file, buf[kept:])
		for _, p := range l.pieces {
			if bytes.Contains(buf[:kept+n], p) {
				return true, nil
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		kept = copy(buf, buf[len(buf)-pieceBytes:])
	}
}

// note adds the texts of rows that are going to be removed, but for those that are kept elsewhere. Of a memory its text stands for
// its vector, which lies behind it in the row and is overwritten first.
func (t *tx) note(ctx context.Context, kept map[string]bool, query string, args []any) error {
	if t.left.many {
		return nil
	}
	texts := make([]string, 1+strings.Count(query, ", "))
	to := make([]any, len(texts))
	for i := range texts {
		to[i] = &texts[i]
	}
	return t.Each(ctx, query, args, func(row sqlstore.Row) (bool, error) {
		if err := row.Scan(to...); err != nil {
			return false, err
		}
		for _, s := range texts {
			if !kept[s] {
				t.left.text(s)
			}
		}
		return !t.left.many, nil
	})
}

// forget empties the log, whose frames hold earlier copies of pages, and rewrites the file if it holds any, if something was
// removed now or was removed while somebody else was reading.
func (b *Backend) forget(ctx context.Context, t *tx) error {
	if t.Erased {
		b.keep(t.left)
	}
	b.mu.Lock()
	stale := b.stale
	b.mu.Unlock()
	if !stale {
		return nil
	}
	b.readers.Lock()
	defer b.readers.Unlock()
	b.mu.Lock()
	left := b.left
	b.left, b.stale = leftovers{}, false // another change may add to them from now on
	b.mu.Unlock()
	busy, err := b.clear(context.WithoutCancel(ctx), left)
	if busy || err != nil {
		b.keep(left)
	}
	return err
}

// keep notes what the log or the file may still hold.
func (b *Backend) keep(left leftovers) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stale = true
	b.left.join(left)
}

// clear empties the log and removes what is left in the file. busy: another process is reading, and nothing is certain.
func (b *Backend) clear(ctx context.Context, left leftovers) (busy bool, err error) {
	if busy, err = b.checkpoint(ctx); busy || err != nil {
		return busy, err
	}
	stand, err := left.stand(b.path)
	if err == nil && stand {
		if _, err = b.writer.ExecContext(ctx, "VACUUM"); err == nil {
			return b.checkpoint(ctx)
		}
	}
	if err != nil {
		return false, fmt.Errorf("sqlite: %w: the file may still hold it: %w", memory.ErrNotErased, err)
	}
	return false, nil
}

// checkpoint moves the log to the file and empties it; busy: another process is reading.
func (b *Backend) checkpoint(ctx context.Context) (busy bool, err error) {
	var code, frames, moved int
	if err := b.writer.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&code, &frames, &moved); err != nil {
		return false, fmt.Errorf("sqlite: %w: the log still holds it: %w", memory.ErrNotErased, err)
	}
	return code != 0, nil
}
