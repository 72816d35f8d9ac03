package memory

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/embed"
)

// Config configures a [Local]; the zero Config is the usual one.
type Config struct {
	// Embedder makes the vectors; nil: the sentence model all-MiniLM-L6-v2 in this process, minilm.Default, which is
	// downloaded once (83 MB) when the first text is embedded. [Lexical] needs no model. A store must be opened with the
	// embedder that it was filled with, or brought to another by [Local.Reembed].
	Embedder embed.Embedder
	// ByWords has a store whose vectors another embedder has made search by words and add without vectors, where it would fail with
	// [ErrEmbedder]. It is called each time, with that error, and must not use the store. nil: the error is returned. [Local.Fill]
	// returns it either way.
	ByWords func(err error)
	// Extractor decides what is remembered of the messages that are added; nil: [Verbatim].
	Extractor Extractor
	// NoEntities leaves out what is described at [Names]: entities are neither kept nor looked for.
	NoEntities bool
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Indexes holds what searches need in memory; nil: some of the store's own, see [NewIndexes].
	Indexes *Indexes
	// NewID makes the IDs of memories and revisions; nil: UUIDs that sort by time.
	NewID func() string
}

// Local is a [Store] that extracts, embeds and ranks in this process and keeps what it has in a [Backend]. It is safe
// for concurrent use. Adds to one scope run one after the other, since what is new depends on what is known;
// over several processes only what they write is ordered. It starts no goroutines.
type Local struct {
	backend  Backend
	embedder embed.Embedder
	extract  Extractor
	now      func() time.Time
	newID    func() string
	adding   *turnstile

	indexes *Indexes

	noEntities bool
	byWords    func(error) // nil: ErrEmbedder is returned

	mu     sync.Mutex
	closed bool // guarded by mu
}

var (
	_ Store      = (*Local)(nil)
	_ Porter     = (*Local)(nil)
	_ MessageLog = (*Local)(nil)
	_ Getter     = (*Local)(nil)
)

// New returns a store over the backend, which the store closes.
func New(backend Backend, cfg Config) (*Local, error) {
	if backend == nil {
		return nil, fmt.Errorf("%w: backend is nil", ErrInvalid)
	}
	l := &Local{
		backend: backend, embedder: embedderOr(cfg.Embedder), extract: cfg.Extractor, now: cfg.Now, newID: cfg.NewID,
		adding: newTurnstile(), noEntities: cfg.NoEntities, byWords: cfg.ByWords, indexes: cfg.Indexes,
	}
	if l.indexes == nil {
		l.indexes = NewIndexes(0)
	}
	if l.extract == nil {
		l.extract = Verbatim{}
	}
	if l.now == nil {
		l.now = time.Now
	}
	if l.newID == nil {
		var ids idSource
		l.newID = func() string { return ids.next(l.now()) }
	}
	return l, nil
}

// Get returns one memory.
func (l *Local) Get(ctx context.Context, id string) (Memory, error) {
	found, err := l.backend.Get(ctx, []string{id})
	if err != nil {
		return Memory{}, fmt.Errorf("memory: get: %w", err)
	}
	if len(found) == 0 {
		return Memory{}, notFound(id)
	}
	return found[0], nil
}

// GetMany returns memories by their IDs.
func (l *Local) GetMany(ctx context.Context, ids []string, opts ListOptions) (_ []Memory, err error) {
	defer named("get many", &err)
	if err := opts.Filter.Validate(); err != nil {
		return nil, err
	}
	ids = slices.Clone(ids)
	slices.Sort(ids)
	found, err := l.backend.Get(ctx, slices.Compact(ids))
	if err != nil {
		return nil, err
	}
	now := l.moment()
	found = slices.DeleteFunc(found, func(m Memory) bool { return !opts.lists(&m, now) })
	return opts.inOrder(found), nil
}

// GetAll lists a scope.
func (l *Local) GetAll(ctx context.Context, scope Scope, opts ListOptions) (_ []Memory, err error) {
	defer named("get all", &err)
	if err := scope.Validate(); err != nil {
		return nil, err
	}
	if err := opts.Filter.Validate(); err != nil {
		return nil, err
	}
	now := l.moment()
	all := []Memory{}
	err = l.backend.Scan(ctx, scope, Memories, func(r *Record) bool {
		if opts.lists(&r.Memory, now) {
			all = append(all, r.Memory)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	return opts.inOrder(all), nil
}

// lists reports whether a memory is one of those that are asked for.
func (o *ListOptions) lists(m *Memory, now time.Time) bool {
	return (o.Expired || !m.Expired(now)) && o.Filter.Match(m)
}

// inOrder returns the oldest memories, as many as are asked for.
func (o *ListOptions) inOrder(all []Memory) []Memory {
	sortByAge(all)
	if o.Limit > 0 && len(all) > o.Limit {
		return all[:o.Limit]
	}
	return all
}

// History returns the revisions of a memory.
func (l *Local) History(ctx context.Context, id string) ([]Revision, error) {
	var rows []Revision
	err := l.backend.History(ctx, Scope{}, id, func(r *Revision) bool {
		rows = append(rows, *r)
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("memory: history: %w", err)
	}
	if len(rows) == 0 {
		return nil, notFound(id)
	}
	return rows, nil
}

// Reset removes everything.
func (l *Local) Reset(ctx context.Context) (err error) {
	defer named("reset", &err)
	return l.backend.Reset(ctx)
}

// Close closes the backend; closing again does nothing.
func (l *Local) Close() error {
	l.mu.Lock()
	closed := l.closed
	l.closed = true
	l.mu.Unlock()
	if closed {
		return nil
	}
	l.indexes.dropStore(l)
	return l.backend.Close()
}

func (l *Local) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// AppendMessages adds to a scope's conversation.
func (l *Local) AppendMessages(ctx context.Context, scope Scope, messages ...Message) error {
	return l.changeLog(ctx, scope, func(tx Tx, log Log) error {
		return tx.AppendMessages(ctx, log, cleanMessages(messages), 0)
	})
}

// SetMessages replaces a scope's conversation.
func (l *Local) SetMessages(ctx context.Context, scope Scope, messages []Message) error {
	return l.changeLog(ctx, scope, func(tx Tx, log Log) error {
		return tx.SetMessages(ctx, log, cleanMessages(messages))
	})
}

func (l *Local) changeLog(ctx context.Context, scope Scope, f func(Tx, Log) error) (err error) {
	defer named("messages", &err)
	if err := scope.Validate(); err != nil {
		return err
	}
	return l.backend.Change(ctx, func(tx Tx) error { return f(tx, Log{Scope: scope, Kind: chatLog}) })
}

// Messages returns a scope's conversation.
func (l *Local) Messages(ctx context.Context, scope Scope, last int) (_ []Message, err error) {
	defer named("messages", &err)
	if err := scope.Validate(); err != nil {
		return nil, err
	}
	return l.backend.Messages(ctx, Log{Scope: scope, Kind: chatLog}, last)
}

// named says in an error which method failed.
func named(method string, err *error) {
	if *err != nil {
		*err = fmt.Errorf("memory: %s: %w", method, *err)
	}
}

// moment is the present in the precision in which times are stored.
func (l *Local) moment() time.Time { return stored(l.now()) }

// stored brings a time to UTC and whole microseconds, what every backend keeps.
func stored(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}

func notFound(id string) error { return fmt.Errorf("memory %q: %w", id, ErrNotFound) }

// idSource makes UUIDs of version 7 (RFC 9562): they begin with the time, so that those of one process sort by when they
// were made. Within a millisecond the 12 bits behind the version count up.
type idSource struct {
	mu   sync.Mutex
	last uint64 // guarded by mu; milliseconds << 12 | count
}

func (s *idSource) next(now time.Time) string {
	stamp := uint64(max(now.UnixMilli(), 0)) << 12
	s.mu.Lock()
	s.last = max(s.last+1, stamp)
	stamp = s.last
	s.mu.Unlock()

	var b [16]byte
	_, _ = rand.Read(b[8:]) // never fails (crypto/rand)
	binary.BigEndian.PutUint64(b[:8], stamp>>12<<16|stamp&0xfff)
	b[6] |= 0x70
	b[8] = b[8]&0x3f | 0x80
	var out [36]byte
	hex.Encode(out[0:8], b[0:4])
	hex.Encode(out[9:13], b[4:6])
	hex.Encode(out[14:18], b[6:8])
	hex.Encode(out[19:23], b[8:10])
	hex.Encode(out[24:], b[10:])
	out[8], out[13], out[18], out[23] = '-', '-', '-', '-'
	return string(out[:])
}
