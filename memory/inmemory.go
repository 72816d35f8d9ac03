package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// NewInMemory returns an empty [Backend] of maps: for tests, for short programs, and as the plainest one to read. Everything is lost when
// the process ends. A transaction copies the maps, and a search after one reads everything anew, so both take time in proportion to all
// that is kept: for many memories use memory/sqlite.
func NewInMemory() Backend { return &inMemory{inMemTx: inMemTx{}.copied()} }

type inMemory struct {
	mu     sync.Mutex
	closed bool
	inMemTx
}

// inMemTx is the state of an inMemory, or the copy that a transaction changes. Records and messages are never changed in place.
type inMemTx struct {
	version int64 // how many transactions there were, and one
	space   Space
	records map[string]*Record // by ID
	history []Revision
	logs    map[Log][]Message
}

func (t inMemTx) copied() inMemTx {
	records, logs := map[string]*Record{}, map[Log][]Message{}
	maps.Copy(records, t.records)
	maps.Copy(logs, t.logs)
	return inMemTx{t.version + 1, t.space, records, slices.Clone(t.history), logs}
}

// alone runs f while nobody else reads or changes.
func (b *inMemory) alone(ctx context.Context, f func()) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return fmt.Errorf("in-memory backend: %w", ErrClosed)
	}
	err := ctx.Err()
	if err == nil {
		f()
	}
	return err
}

func (b *inMemory) Change(ctx context.Context, f func(tx Tx) error) error {
	var failed error
	err := b.alone(ctx, func() {
		t := b.copied()
		if failed = f(&t); failed == nil {
			b.inMemTx = t
		}
	})
	return cmp.Or(err, failed)
}

func (b *inMemory) Get(ctx context.Context, ids []string) (found []Memory, err error) {
	err = b.alone(ctx, func() {
		for _, id := range ids {
			if r := b.records[id]; r != nil {
				found = append(found, r.copied().Memory)
			}
		}
	})
	return found, err
}

func (b *inMemory) Scan(ctx context.Context, scope Scope, part Part, yield func(*Record) bool) error {
	return b.alone(ctx, func() {
		b.each(scope, func(r *Record) bool { return part == Unembedded && len(r.Vector) > 0 || yield(r.copied()) })
	})
}

func (b *inMemory) Follow(ctx context.Context, scope Scope, since int64, to Changes) (seen State, err error) {
	err = b.alone(ctx, func() {
		if seen = (State{Version: b.version, Space: b.space}); since == seen.Version {
			return
		}
		to.Reset()
		b.each(scope, func(r *Record) bool {
			to.Put(r)
			return true
		})
	})
	return seen, err
}

func (b *inMemory) History(ctx context.Context, scope Scope, memoryID string, yield func(*Revision) bool) error {
	return b.alone(ctx, func() {
		for _, r := range b.history {
			if r.of(scope, memoryID) && !yield(&r) {
				break
			}
		}
	})
}

func (b *inMemory) Messages(ctx context.Context, log Log, last int) (messages []Message, err error) {
	err = b.alone(ctx, func() { messages = ending(b.logs[log], last) })
	return messages, err
}

func (b *inMemory) Reset(ctx context.Context) error {
	return b.alone(ctx, func() { b.inMemTx = inMemTx{version: b.version}.copied() })
}

func (b *inMemory) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed, b.inMemTx = true, inMemTx{}
	return nil
}

// each calls yield with the records of a scope until it returns false.
func (t *inMemTx) each(scope Scope, yield func(*Record) bool) {
	for _, r := range t.records {
		if scope.Covers(r.Memory.Scope) && !yield(r) {
			return
		}
	}
}

// of reports whether it is a revision of a memory, "" for any, in a scope.
func (r *Revision) of(scope Scope, memoryID string) bool {
	return (memoryID == "" || r.MemoryID == memoryID) && scope.Covers(r.Scope)
}

// copied returns a record that shares nothing with r that can be changed.
func (r *Record) copied() *Record {
	out := Record{Memory: r.Memory, Vector: slices.Clone(r.Vector), Entities: slices.Clone(r.Entities)}
	out.Memory.Metadata, _ = cleanMetadata(r.Memory.Metadata) // it was clean
	return &out
}

// ending returns a copy of the last messages; last ≤ 0: of all.
func ending(messages []Message, last int) []Message {
	if last > 0 && len(messages) > last {
		messages = messages[len(messages)-last:]
	}
	out := slices.Clone(messages)
	for i := range out {
		out[i].Extra = slices.Clone(out[i].Extra)
	}
	return out
}

func (t *inMemTx) Get(_ context.Context, id string) (m Memory, ok bool, err error) {
	if r := t.records[id]; r != nil {
		m, ok = r.copied().Memory, true
	}
	return m, ok, nil
}

func (t *inMemTx) Find(ctx context.Context, scope Scope, hash string) (Memory, bool, error) {
	for id, r := range t.records {
		if r.Memory.Scope == scope && r.Memory.Hash == hash {
			return t.Get(ctx, id)
		}
	}
	return Memory{}, false, nil
}

func (t *inMemTx) IDs(_ context.Context, scope Scope) (ids []string, err error) {
	t.each(scope, func(r *Record) bool {
		ids = append(ids, r.Memory.ID)
		return true
	})
	return ids, nil
}

func (t *inMemTx) Put(ctx context.Context, r *Record) error {
	if other, taken, _ := t.Find(ctx, r.Memory.Scope, r.Memory.Hash); taken && other.ID != r.Memory.ID {
		return fmt.Errorf("in-memory backend: %w: %q", ErrExists, other.ID)
	}
	t.records[r.Memory.ID] = r.copied()
	return nil
}

func (t *inMemTx) SetVector(_ context.Context, id string, vector []float32) error {
	if r := t.records[id]; r != nil {
		t.records[id] = &Record{Memory: r.Memory, Vector: slices.Clone(vector), Entities: r.Entities}
	}
	return nil
}

func (t *inMemTx) DropVectors(ctx context.Context) (err error) {
	for id := range t.records {
		err = t.SetVector(ctx, id, nil)
	}
	return err
}

func (t *inMemTx) Remove(_ context.Context, id string) (ok bool, err error) {
	_, ok = t.records[id]
	delete(t.records, id)
	return ok, nil
}

func (t *inMemTx) Append(_ context.Context, r *Revision) (fresh bool, err error) {
	if slices.ContainsFunc(t.history, func(row Revision) bool { return row.ID == r.ID }) {
		return false, nil
	}
	t.history = append(t.history, *r)
	return true, nil
}

func (t *inMemTx) Erase(_ context.Context, scope Scope, memoryID string) (erased int, err error) {
	for i := range t.history {
		if r := &t.history[i]; (r.Old != "" || r.New != "") && r.of(scope, memoryID) {
			r.Old, r.New = "", ""
			erased++
		}
	}
	return erased, nil
}

func (t *inMemTx) SetMessages(_ context.Context, log Log, messages []Message) error {
	if t.logs[log] = ending(messages, 0); len(messages) == 0 {
		delete(t.logs, log)
	}
	return nil
}

func (t *inMemTx) AppendMessages(ctx context.Context, log Log, messages []Message, keep int) error {
	return t.SetMessages(ctx, log, ending(slices.Concat(t.logs[log], messages), keep))
}

func (t *inMemTx) DropMessages(_ context.Context, kind string, scope Scope) error {
	maps.DeleteFunc(t.logs, func(log Log, _ []Message) bool { return log.Kind == kind && scope.Covers(log.Scope) })
	return nil
}

func (t *inMemTx) Space(context.Context) (Space, error) { return t.space, nil }

func (t *inMemTx) SetSpace(_ context.Context, s Space) error { t.space = s; return nil }
