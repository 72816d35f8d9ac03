package memory

import (
	"context"
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
func (l *Local) GetMany(ctx context.Context, ids []string, opts ListOptions) ([]Memory, error) {
	if err := opts.Filter.Validate(); err != nil {
		return nil, fmt.Errorf("memory: get many: %w", err)
	}
	ids = slices.Clone(ids)
	slices.Sort(ids)
	found, err := l.backend.Get(ctx, slices.Compact(ids))
	if err != nil {
		return nil, fmt.Errorf("memory: get many: %w", err)
	}
	now := l.moment()
	found = slices.DeleteFunc(found, func(m Memory) bool { return !opts.lists(&m, now) })
	sortByAge(found)
	return opts.limited(found), nil
}

// GetAll lists a scope.
func (l *Local) GetAll(ctx context.Context, scope Scope, opts ListOptions) ([]Memory, error) {
	if err := scope.Validate(); err != nil {
		return nil, fmt.Errorf("memory: get all: %w", err)
	}
	if err := opts.Filter.Validate(); err != nil {
		return nil, fmt.Errorf("memory: get all: %w", err)
	}
	now := l.moment()
	all := []Memory{}
	err := l.backend.Scan(ctx, scope, Memories, func(r *Record) bool {
		if opts.lists(&r.Memory, now) {
			all = append(all, r.Memory)
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("memory: get all: %w", err)
	}
	sortByAge(all)
	return opts.limited(all), nil
}

// lists reports whether a memory is one of those that are asked for.
func (o *ListOptions) lists(m *Memory, now time.Time) bool {
	return (o.Expired || !m.Expired(now)) && o.Filter.Match(m)
}

func (o *ListOptions) limited(all []Memory) []Memory {
	if o.Limit > 0 && len(all) > o.Limit {
		return all[:o.Limit]
	}
	return all
}

// History returns the revisions of a memory.
func (l *Local) History(ctx context.Context, id string) ([]Revision, error) {
	rows, err := l.backend.History(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("memory: history: %w", err)
	}
	if len(rows) == 0 {
		return nil, notFound(id)
	}
	return rows, nil
}

// Reset removes everything.
func (l *Local) Reset(ctx context.Context) error {
	if err := l.backend.Reset(ctx); err != nil {
		return fmt.Errorf("memory: reset: %w", err)
	}
	return nil
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

func (l *Local) changeLog(ctx context.Context, scope Scope, f func(Tx, Log) error) error {
	if err := scope.Validate(); err != nil {
		return fmt.Errorf("memory: messages: %w", err)
	}
	err := l.backend.Change(ctx, func(tx Tx) error { return f(tx, Log{Scope: scope, Kind: chatLog}) })
	if err != nil {
		return fmt.Errorf("memory: messages: %w", err)
	}
	return nil
}

// Messages returns a scope's conversation.
func (l *Local) Messages(ctx context.Context, scope Scope, last int) ([]Message, error) {
	if err := scope.Validate(); err != nil {
		return nil, fmt.Errorf("memory: messages: %w", err)
	}
	messages, err := l.backend.Messages(ctx, Log{Scope: scope, Kind: chatLog}, last)
	if err != nil {
		return nil, fmt.Errorf("memory: messages: %w", err)
	}
	return messages, nil
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
