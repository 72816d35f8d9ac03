package inmem

import (
	"context"
	"fmt"
	"slices"

	"github.com/ragpilot/ragpilot/memory"
)

// tx changes the state in place and notes how to undo each step.
type tx struct {
	*state
	undo []func()
}

var _ memory.Tx = (*tx)(nil)

func (t *tx) later(undo func()) { t.undo = append(t.undo, undo) }

// change notes that a record was changed.
func (t *tx) change(id string) {
	n := len(t.changed)
	t.changed = append(t.changed, id)
	t.later(func() { t.changed = t.changed[:n] })
}

// Get returns a memory.
func (t *tx) Get(_ context.Context, id string) (memory.Memory, bool, error) {
	r := t.records[id]
	if r == nil {
		return memory.Memory{}, false, nil
	}
	return copied(&r.Memory), true, nil
}

// Find looks up a hash.
func (t *tx) Find(ctx context.Context, scope memory.Scope, hash string) (memory.Memory, bool, error) {
	id, ok := t.hashes[hashKey{scope, hash}]
	if !ok {
		return memory.Memory{}, false, nil
	}
	return t.Get(ctx, id)
}

// IDs walks through the records.
func (t *tx) IDs(_ context.Context, scope memory.Scope) (ids []string, err error) {
	for id, r := range t.records {
		if scope.Covers(r.Memory.Scope) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Put stores a copy.
func (t *tx) Put(ctx context.Context, r *memory.Record) error {
	if _, err := t.Remove(ctx, r.Memory.ID); err != nil {
		return err
	}
	key := hashKey{r.Memory.Scope, r.Memory.Hash}
	if other, taken := t.hashes[key]; taken {
		return fmt.Errorf("inmem: %w: %q", memory.ErrExists, other)
	}
	t.later(restore(t.records, r.Memory.ID))
	t.later(restore(t.hashes, key))
	t.records[r.Memory.ID], t.hashes[key] = clone(r), r.Memory.ID
	t.change(r.Memory.ID)
	return nil
}

// SetVector replaces the record by one with that vector.
func (t *tx) SetVector(_ context.Context, id string, vector []float32) error {
	if old := t.records[id]; old != nil {
		r := clone(old)
		r.Vector = slices.Clone(vector)
		t.later(restore(t.records, id))
		t.records[id] = r
		t.change(id)
	}
	return nil
}

// DropVectors replaces all records by some without a vector.
func (t *tx) DropVectors(ctx context.Context) error {
	for id := range t.records {
		if err := t.SetVector(ctx, id, nil); err != nil {
			return err
		}
	}
	return nil
}

// Remove removes a record.
func (t *tx) Remove(_ context.Context, id string) (bool, error) {
	r := t.records[id]
	if r == nil {
		return false, nil
	}
	key := hashKey{r.Memory.Scope, r.Memory.Hash}
	t.later(restore(t.records, id))
	t.later(restore(t.hashes, key))
	delete(t.records, id)
	delete(t.hashes, key)
	t.change(id)
	return true, nil
}

// Append writes a row.
func (t *tx) Append(_ context.Context, r *memory.Revision) (bool, error) {
	if _, there := t.rows[r.ID]; there {
		return false, nil
	}
	row := *r
	t.rows[r.ID] = len(t.history)
	t.history = append(t.history, &row)
	t.later(func() {
		delete(t.rows, row.ID)
		t.history = t.history[:len(t.history)-1]
	})
	return true, nil
}

// Erase blanks the rows of a memory.
func (t *tx) Erase(_ context.Context, memoryID string) (int, error) {
	return t.erase(func(r *memory.Revision) bool { return r.MemoryID == memoryID }), nil
}

// EraseScope blanks the rows of a scope.
func (t *tx) EraseScope(_ context.Context, scope memory.Scope) (int, error) {
	return t.erase(func(r *memory.Revision) bool { return scope.Covers(r.Scope) }), nil
}

func (t *tx) erase(which func(*memory.Revision) bool) (erased int) {
	for i, r := range t.history {
		if r.Old == "" && r.New == "" || !which(r) {
			continue
		}
		blank := *r
		blank.Old, blank.New = "", ""
		t.history[i] = &blank
		t.later(func() { t.history[i] = r })
		erased++
	}
	return erased
}

// SetMessages replaces a log.
func (t *tx) SetMessages(_ context.Context, log memory.Log, messages []memory.Message) error {
	t.later(restore(t.logs, log))
	if len(messages) == 0 {
		delete(t.logs, log)
	} else {
		t.logs[log] = copiedMessages(messages)
	}
	return nil
}

// AppendMessages adds to a log.
func (t *tx) AppendMessages(ctx context.Context, log memory.Log, messages []memory.Message, keep int) error {
	all := append(copiedMessages(t.logs[log]), messages...)
	if keep > 0 && len(all) > keep {
		all = all[len(all)-keep:]
	}
	return t.SetMessages(ctx, log, all)
}

// DropMessages removes logs.
func (t *tx) DropMessages(ctx context.Context, kind string, scope memory.Scope) error {
	for _, log := range t.logsOf(kind, scope) {
		if err := t.SetMessages(ctx, log, nil); err != nil {
			return err
		}
	}
	return nil
}

// Space returns the space.
func (t *tx) Space(context.Context) (memory.Space, error) { return t.space, nil }

// SetSpace replaces the space.
func (t *tx) SetSpace(_ context.Context, space memory.Space) error {
	old := t.space
	t.later(func() { t.space = old })
	t.space = space
	t.change("")
	return nil
}
