package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/ragpilot/ragpilot/memory/internal/lexical"
)

// Update changes one memory.
func (l *Local) Update(ctx context.Context, id string, change Update) (Memory, error) {
	m, err := l.update(ctx, id, change)
	if err != nil {
		return Memory{}, fmt.Errorf("memory: update: %w", err)
	}
	return m, nil
}

func (l *Local) update(ctx context.Context, id string, change Update) (m Memory, err error) {
	metadata, err := cleanMetadata(change.Metadata)
	if err != nil {
		return Memory{}, err
	}
	old, err := l.backend.Get(ctx, []string{id})
	if err != nil {
		return Memory{}, err
	}
	if len(old) == 0 {
		return Memory{}, notFound(id)
	}
	text := old[0].Text
	if change.Text != nil {
		if text = clean(*change.Text); text == "" {
			return Memory{}, ErrEmptyText
		}
	}
	vectors, err := l.vectors(ctx, []string{text})
	if err != nil {
		return Memory{}, err
	}
	r := Record{Vector: vectors[0], Terms: lexical.Terms(text), Entities: l.entities(nil, text)}
	now := l.moment()
	err = l.backend.Change(ctx, func(tx Tx) error {
		was, ok, err := tx.Get(ctx, id)
		if err != nil {
			return err
		}
		if !ok || change.Text == nil && was.Text != text {
			return notFound(id) // removed, or removed and made anew, since it was read
		}
		other, taken, err := tx.Find(ctx, was.Scope, HashOf(text))
		if err != nil {
			return err
		}
		if taken && other.ID != id {
			return fmt.Errorf("%w: %q", ErrExists, other.ID)
		}
		r.Memory = was
		r.Memory.Text, r.Memory.Hash, r.Memory.UpdatedAt = text, HashOf(text), now
		if change.Metadata != nil {
			r.Memory.Metadata = metadata
		}
		if change.ExpiresAt != nil {
			r.Memory.ExpiresAt = stored(*change.ExpiresAt)
		}
		if err := tx.Put(ctx, &r); err != nil {
			return err
		}
		return l.write(ctx, tx, Updated, &r.Memory, was.Text, text, now)
	})
	return r.Memory, err
}

// Delete removes one memory.
func (l *Local) Delete(ctx context.Context, id string, opts DeleteOptions) error {
	now := l.moment()
	err := l.backend.Change(ctx, func(tx Tx) error {
		m, ok, err := tx.Get(ctx, id)
		if err != nil {
			return err
		}
		if ok {
			return l.drop(ctx, tx, &m, opts, now)
		}
		if opts.KeepHistory {
			return notFound(id)
		}
		rows, err := tx.Erase(ctx, id)
		if err == nil && rows == 0 {
			err = notFound(id)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("memory: delete: %w", err)
	}
	return nil
}

// DeleteAll removes what the scope covers.
func (l *Local) DeleteAll(ctx context.Context, scope Scope, opts DeleteOptions) (int, error) {
	if err := scope.Validate(); err != nil {
		return 0, fmt.Errorf("memory: delete all: %w", err)
	}
	now := l.moment()
	removed := 0
	err := l.backend.Change(ctx, func(tx Tx) error {
		ids, err := tx.IDs(ctx, scope)
		if err != nil {
			return err
		}
		removed = len(ids)
		for _, id := range ids {
			m, _, err := tx.Get(ctx, id)
			if err != nil {
				return err
			}
			if err := l.drop(ctx, tx, &m, opts, now); err != nil {
				return err
			}
		}
		if opts.KeepHistory {
			return nil
		}
		if _, err := tx.EraseScope(ctx, scope); err != nil {
			return err
		}
		return tx.DropMessages(ctx, recentLog, scope)
	})
	if err != nil {
		return 0, fmt.Errorf("memory: delete all: %w", err)
	}
	return removed, nil
}

// drop removes a memory within a transaction. The messages that extractors look back at may hold what it said: they go too.
func (l *Local) drop(ctx context.Context, tx Tx, m *Memory, opts DeleteOptions, now time.Time) error {
	if _, err := tx.Remove(ctx, m.ID); err != nil {
		return err
	}
	text := m.Text
	if !opts.KeepHistory {
		text = ""
		if _, err := tx.Erase(ctx, m.ID); err != nil {
			return err
		}
		if err := tx.SetMessages(ctx, Log{Scope: m.Scope, Kind: recentLog}, nil); err != nil {
			return err
		}
	}
	return l.write(ctx, tx, Deleted, m, text, "", now)
}
