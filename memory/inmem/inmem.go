package inmem

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/ragpilot/ragpilot/memory"
)

// errClosed is what a closed backend answers.
var errClosed = errors.New("inmem: closed")

// Backend keeps everything in maps. It is safe for concurrent use: readers run together, transactions alone.
type Backend struct {
	mu     sync.RWMutex
	closed bool // guarded by mu
	state  state
}

// state is what a transaction changes; guarded by Backend.mu. Records are never changed in place.
type state struct {
	space   memory.Space
	records map[string]*memory.Record // by ID
	hashes  map[hashKey]string        // → ID
	history []*memory.Revision        // in the order of writing
	rows    map[string]int            // ID of a revision → index into history
	logs    map[memory.Log][]memory.Message

	// changed lists what transactions have changed, the latest last: IDs of records, "" for the space. The version is how many
	// changes there were: forgotten ones, which are not in the list, and these.
	changed   []string
	forgotten int64
}

// maxChanged bounds the list of changes: it is cut to half of that.
const maxChanged = 4000

type hashKey struct {
	scope memory.Scope
	hash  string
}

var _ memory.Backend = (*Backend)(nil)

// New returns an empty backend.
func New() *Backend { return &Backend{state: newState()} }

func newState() state {
	return state{
		records: map[string]*memory.Record{}, hashes: map[hashKey]string{}, rows: map[string]int{},
		logs: map[memory.Log][]memory.Message{}, forgotten: 1,
	}
}

// Change runs f alone; what it did is undone, step by step from the end, if it fails or panics.
func (b *Backend) Change(ctx context.Context, f func(tx memory.Tx) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ready(ctx); err != nil {
		return err
	}
	t := &tx{state: &b.state}
	committed := false
	defer func() {
		if committed {
			return
		}
		for _, undo := range slices.Backward(t.undo) {
			undo()
		}
	}()
	if err := f(t); err != nil {
		return err
	}
	committed = true
	if n := len(b.state.changed) - maxChanged/2; n > maxChanged/2 {
		b.state.changed = slices.Clone(b.state.changed[n:])
		b.state.forgotten += int64(n)
	}
	return nil
}

// read runs f while nothing changes.
func (b *Backend) read(ctx context.Context, f func(*state)) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if err := b.ready(ctx); err != nil {
		return err
	}
	f(&b.state)
	return nil
}

// ready is an error after Close and at the end of the context; the caller holds mu.
func (b *Backend) ready(ctx context.Context) error {
	if b.closed {
		return errClosed
	}
	return ctx.Err()
}

// Get returns the memories that exist.
func (b *Backend) Get(ctx context.Context, ids []string) (found []memory.Memory, err error) {
	err = b.read(ctx, func(s *state) {
		for _, id := range ids {
			if r := s.records[id]; r != nil {
				found = append(found, copied(&r.Memory))
			}
		}
	})
	return found, err
}

// Scan calls yield with copies.
func (b *Backend) Scan(ctx context.Context, scope memory.Scope, part memory.Part, yield func(*memory.Record) bool) error {
	return b.read(ctx, func(s *state) {
		for _, r := range s.records {
			if !scope.Covers(r.Memory.Scope) || part == memory.Unembedded && len(r.Vector) > 0 {
				continue
			}
			if !yield(&memory.Record{Memory: copied(&r.Memory), Vector: r.Vector, Entities: r.Entities}) {
				return
			}
		}
	})
}

// Follow reads the list of changes.
func (b *Backend) Follow(ctx context.Context, scope memory.Scope, since int64, to memory.Changes) (seen memory.State, err error) {
	err = b.read(ctx, func(s *state) {
		seen = memory.State{Version: s.forgotten + int64(len(s.changed)), Space: s.space}
		put := func(r *memory.Record) {
			if scope.Covers(r.Memory.Scope) {
				to.Put(&memory.Record{Memory: copied(&r.Memory), Vector: r.Vector, Entities: r.Entities})
			}
		}
		switch {
		case since == seen.Version:
		case since < max(s.forgotten, 1) || since > seen.Version:
			to.Reset()
			for _, r := range s.records {
				put(r)
			}
		default:
			ids := slices.Compact(slices.Sorted(slices.Values(s.changed[since-s.forgotten:])))
			for _, id := range ids {
				to.Remove(id)
			}
			for _, id := range ids {
				if r := s.records[id]; r != nil {
					put(r)
				}
			}
		}
	})
	return seen, err
}

// History returns a memory's revisions.
func (b *Backend) History(ctx context.Context, memoryID string) (rows []memory.Revision, err error) {
	err = b.read(ctx, func(s *state) {
		for _, r := range s.history {
			if r.MemoryID == memoryID {
				rows = append(rows, *r)
			}
		}
	})
	return rows, err
}

// ScopeHistory calls yield with copies.
func (b *Backend) ScopeHistory(ctx context.Context, scope memory.Scope, yield func(*memory.Revision) bool) error {
	return b.read(ctx, func(s *state) {
		for _, r := range s.history {
			if out := *r; scope.Covers(r.Scope) && !yield(&out) {
				return
			}
		}
	})
}

// Messages returns a log.
func (b *Backend) Messages(ctx context.Context, log memory.Log, last int) (messages []memory.Message, err error) {
	err = b.read(ctx, func(s *state) {
		all := s.logs[log]
		if last > 0 && len(all) > last {
			all = all[len(all)-last:]
		}
		messages = copiedMessages(all)
	})
	return messages, err
}

// Reset forgets everything.
func (b *Backend) Reset(ctx context.Context) error {
	return b.Change(ctx, func(memory.Tx) error {
		version := b.state.forgotten + int64(len(b.state.changed))
		b.state = newState()
		b.state.forgotten = version + 1
		return nil
	})
}

// Close forgets everything for good; calls that follow fail.
func (b *Backend) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed, b.state = true, newState()
	return nil
}

// copied returns a memory that shares nothing that can be changed. Values of metadata may be shared if they are lists or
// objects: those are copied as well.
func copied(m *memory.Memory) memory.Memory {
	out := *m
	out.Metadata, _ = copiedValue(m.Metadata).(map[string]any)
	return out
}

func copiedValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if v == nil {
			return v
		}
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[key] = copiedValue(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = copiedValue(value)
		}
		return out
	}
	return v
}

func copiedMessages(messages []memory.Message) []memory.Message {
	out := make([]memory.Message, len(messages))
	for i, m := range messages {
		m.Extra = slices.Clone(m.Extra)
		out[i] = m
	}
	return out
}

// clone is used where a transaction replaces what readers may hold.
func clone(r *memory.Record) *memory.Record {
	return &memory.Record{
		Memory: copied(&r.Memory), Vector: slices.Clone(r.Vector), Entities: slices.Clone(r.Entities),
	}
}

// restore returns what gives a map's key the value back that it has now.
func restore[K comparable, V any](m map[K]V, key K) func() {
	old, had := m[key]
	return func() {
		if had {
			m[key] = old
		} else {
			delete(m, key)
		}
	}
}

// logsOf returns the logs of a kind that a scope covers.
func (s *state) logsOf(kind string, scope memory.Scope) []memory.Log {
	return slices.DeleteFunc(slices.Collect(maps.Keys(s.logs)), func(l memory.Log) bool {
		return l.Kind != kind || !scope.Covers(l.Scope)
	})
}
