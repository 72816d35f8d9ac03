package memory

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// updateTries is how often an update begins anew because another one has changed the text meanwhile.
const updateTries = 5

// errOtherText: the text is not the one any more that was embedded.
var errOtherText = errors.New("the text was changed by others all the time")

// Update changes one memory. Its text is embedded before the transaction begins, as a model may need a while for that.
func (l *Local) Update(ctx context.Context, id string, change Update) (_ Memory, err error) {
	defer named("update", &err)
	metadata, err := cleanMetadata(change.Metadata)
	if err != nil {
		return Memory{}, err
	}
	for range updateTries {
		var r Record
		if r, err = l.changed(ctx, id, change.Text); err != nil {
			return Memory{}, err
		}
		err = l.backend.Change(ctx, func(tx Tx) error { return l.replace(ctx, tx, &r, change, metadata) })
		if err == nil {
			return r.Memory, nil
		}
		if !errors.Is(err, errOtherText) {
			break
		}
	}
	return Memory{}, err
}

// changed returns a memory with the text that it gets, nil: the one that it has, and with what it is found by.
func (l *Local) changed(ctx context.Context, id string, text *string) (r Record, err error) {
	found, err := l.backend.Get(ctx, []string{id})
	if err != nil {
		return r, err
	}
	if len(found) == 0 {
		return r, notFound(id)
	}
	r.Memory = found[0]
	if text != nil {
		r.Memory.Text = clean(*text)
	}
	var entities []string
	switch r.Memory.Text {
	case "":
		return r, ErrEmptyText
	case found[0].Text: // a model may have named them
		if entities, err = l.entitiesOf(ctx, &r.Memory); err != nil {
			return r, err
		}
	}
	vectors, err := l.vectors(ctx, []string{r.Memory.Text})
	if err != nil {
		return r, err
	}
	r.Vector, r.Entities = vectors[0], l.entities(entities, r.Memory.Text)
	return r, nil
}

// replace stores a memory with the text, the vector and the entities of r, and writes its other fields to r.
func (l *Local) replace(ctx context.Context, tx Tx, r *Record, change Update, metadata map[string]any) error {
	text := r.Memory.Text
	old, ok, err := tx.Get(ctx, r.Memory.ID)
	switch {
	case err != nil:
		return err
	case !ok:
		return notFound(r.Memory.ID) // removed since it was read
	case change.Text == nil && old.Text != text:
		return errOtherText
	}
	switch other, taken, err := tx.Find(ctx, old.Scope, HashOf(text)); {
	case err != nil:
		return err
	case taken && other.ID != old.ID:
		return fmt.Errorf("%w: %q", ErrExists, other.ID)
	}
	r.Memory = old
	r.Memory.Text, r.Memory.Hash, r.Memory.UpdatedAt = text, HashOf(text), l.moment()
	if change.Metadata != nil {
		r.Memory.Metadata = metadata
	}
	if change.ExpiresAt != nil {
		r.Memory.ExpiresAt = stored(*change.ExpiresAt)
	}
	out := *r
	if keep, err := l.agreed(ctx, tx, r.Vector); err != nil {
		return err
	} else if !keep {
		out.Vector = nil
	}
	if err := tx.Put(ctx, &out); err != nil {
		return err
	}
	return l.write(ctx, tx, Updated, &r.Memory, old.Text, text, r.Memory.UpdatedAt)
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
func (l *Local) Delete(ctx context.Context, id string, opts DeleteOptions) (err error) {
	defer named("delete", &err)
	now := l.moment()
	return l.backend.Change(ctx, func(tx Tx) error {
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
		rows, err := tx.Erase(ctx, Scope{}, id)
		if err == nil && rows == 0 {
			err = notFound(id)
		}
		return err
	})
}

// DeleteAll removes what the scope covers: all at once, or in parts if the disk has no room for that.
func (l *Local) DeleteAll(ctx context.Context, scope Scope, opts DeleteOptions) (removed int, err error) {
	defer named("delete all", &err)
	if err := scope.Validate(); err != nil {
		return 0, err
	}
	removed, _, err = l.dropSome(ctx, scope, opts, math.MaxInt)
	if errors.Is(err, ErrFull) && !errors.Is(err, ErrNotErased) {
		return l.dropInParts(ctx, scope, opts)
	}
	return removed, err
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
		if _, err := tx.Erase(ctx, scope, ""); err != nil {
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
		if _, err := tx.Erase(ctx, Scope{}, m.ID); err != nil {
			return err
		}
		if err := tx.SetMessages(ctx, Log{Scope: m.Scope, Kind: recentLog}, nil); err != nil {
			return err
		}
	}
	return l.write(ctx, tx, Deleted, m, text, "", now)
}
