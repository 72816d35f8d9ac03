package memory

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
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
	for range updateTries {
		if m, err = l.updateOnce(ctx, id, change, metadata); !errors.Is(err, errOtherText) {
			break
		}
	}
	return m, err
}

// updateTries is how often an update begins anew because another one has changed the text meanwhile.
const updateTries = 5

// errOtherText: the text is not the one any more that was embedded.
var errOtherText = errors.New("the text was changed by others all the time")

func (l *Local) updateOnce(ctx context.Context, id string, change Update, metadata map[string]any) (m Memory, err error) {
	old, err := l.backend.Get(ctx, []string{id})
	if err != nil {
		return Memory{}, err
	}
	if len(old) == 0 {
		return Memory{}, notFound(id)
	}
	text := old[0].Text
	var entities []string // those of a text that stays, which a model may have named
	if change.Text != nil {
		text = clean(*change.Text)
	}
	switch text {
	case "":
		return Memory{}, ErrEmptyText
	case old[0].Text:
		if entities, err = l.entitiesOf(ctx, &old[0]); err != nil {
			return Memory{}, err
		}
	}
	vectors, err := l.vectors(ctx, []string{text})
	if err != nil {
		return Memory{}, err
	}
	r := Record{Entities: l.entities(entities, text)}
	now := l.moment()
	err = l.backend.Change(ctx, func(tx Tx) error {
		was, ok, err := tx.Get(ctx, id)
		if err != nil {
			return err
		}
		if !ok {
			return notFound(id) // removed since it was read
		}
		if change.Text == nil && was.Text != text {
			return errOtherText
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
		keep, err := l.agreed(ctx, tx, vectors[0])
		if err != nil {
			return err
		}
		if r.Vector = vectors[0]; !keep {
			r.Vector = nil
		}
		if err := tx.Put(ctx, &r); err != nil {
			return err
		}
		return l.write(ctx, tx, Updated, &r.Memory, was.Text, text, now)
	})
	return r.Memory, err
}

// entitiesOf returns the entities that are stored with a memory.
func (l *Local) entitiesOf(ctx context.Context, m *Memory) (entities []string, err error) {
	err = l.backend.Scan(ctx, m.Scope, Whole, func(r *Record) bool {
		if r.Memory.ID != m.ID {
			return true
		}
		entities = slices.Clone(r.Entities)
		return false
	})
	return entities, err
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

// DeleteAll removes what the scope covers: all at once, or in parts if the disk has no room for that.
func (l *Local) DeleteAll(ctx context.Context, scope Scope, opts DeleteOptions) (int, error) {
	if err := scope.Validate(); err != nil {
		return 0, fmt.Errorf("memory: delete all: %w", err)
	}
	removed, _, err := l.dropSome(ctx, scope, opts, math.MaxInt)
	if errors.Is(err, ErrFull) && !errors.Is(err, ErrNotErased) {
		removed, err = l.dropInParts(ctx, scope, opts)
	}
	if err != nil {
		return removed, fmt.Errorf("memory: delete all: %w", err)
	}
	return removed, nil
}

// dropInParts removes what the scope covers, some at a time. What cannot be erased yet is erased with the last part.
func (l *Local) dropInParts(ctx context.Context, scope Scope, opts DeleteOptions) (removed int, err error) {
	const atOnce = 100
	for more := true; more; {
		var n int
		n, more, err = l.dropSome(ctx, scope, opts, atOnce)
		if err != nil && (!more || !errors.Is(err, ErrNotErased)) {
			return removed, err
		}
		removed += n
	}
	return removed, nil
}

// dropSome removes at most so many memories of the scope, and reports whether there are more. With the last it removes what is
// in the history only.
func (l *Local) dropSome(ctx context.Context, scope Scope, opts DeleteOptions, most int) (removed int, more bool, err error) {
	now := l.moment()
	err = l.backend.Change(ctx, func(tx Tx) error {
		ids, err := tx.IDs(ctx, scope)
		if err != nil {
			return err
		}
		more = len(ids) > most
		ids = ids[:min(len(ids), most)]
		for _, id := range ids {
			m, _, err := tx.Get(ctx, id)
			if err != nil {
				return err
			}
			if err := l.drop(ctx, tx, &m, opts, now); err != nil {
				return err
			}
		}
		removed = len(ids)
		if more || opts.KeepHistory {
			return nil
		}
		if _, err := tx.EraseScope(ctx, scope); err != nil {
			return err
		}
		return tx.DropMessages(ctx, recentLog, scope)
	})
	if err != nil && !errors.Is(err, ErrNotErased) {
		removed = 0
	}
	return removed, more, err
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
