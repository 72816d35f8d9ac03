package memory

import (
	"context"
	"strings"
	"sync"

	"github.com/ragpilot/ragpilot/internal/base/lru"
	"github.com/ragpilot/ragpilot/memory/internal/index"
)

// scopeIndexBytes is about what an index takes before anything is in it.
const scopeIndexBytes = 1400

// DefaultIndexBytes bounds what a store's indexes take unless [Config.Indexes] says otherwise: those of some 200,000 memories.
const DefaultIndexBytes = 128 << 20

// Indexes holds in memory what searches need of the scopes that were searched last: about 600 bytes for each memory. The
// rest is read again when it is searched. Stores that share one share its bound. It is safe for concurrent use.
type Indexes struct {
	limit int64

	mu    sync.Mutex                        // never held while a backend is asked
	known *lru.Cache[indexKey, *scopeIndex] // guarded by mu
	bytes int64                             // guarded by mu
}

// indexKey names a scope of a store.
type indexKey struct {
	store *Local
	scope Scope
}

// scopeIndex is a scope's index, as of a version of its backend.
type scopeIndex struct {
	key   indexKey
	bytes int64 // guarded by Indexes.mu

	following sync.Mutex // one brings it up to date at a time

	mu    sync.RWMutex // readers share it
	index *index.Index
	state State
}

// NewIndexes returns indexes of at most so many bytes, 0: [DefaultIndexBytes]. The one that is searched may be larger; it is
// then the only one.
func NewIndexes(bytes int64) *Indexes {
	if bytes <= 0 {
		bytes = DefaultIndexBytes
	}
	return &Indexes{limit: bytes, known: lru.With(lru.Options[indexKey, *scopeIndex]{})}
}

// Bytes is about what the indexes take now.
func (x *Indexes) Bytes() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.bytes
}

// of returns the index of a scope of a store. That of a store that is closed is not kept.
func (x *Indexes) of(store *Local, scope Scope) *scopeIndex {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s, ok := x.known.Get(indexKey{store, scope}); ok {
		return s
	}
	// The caller's strings may be parts of longer ones, which would be kept with them.
	scope = Scope{User: strings.Clone(scope.User), Agent: strings.Clone(scope.Agent), Run: strings.Clone(scope.Run)}
	s := &scopeIndex{key: indexKey{store, scope}, index: index.New()}
	if !store.isClosed() {
		x.known.Put(s.key, s)
		x.weigh(s)
	}
	return s
}

// changed notes what an index takes now.
func (x *Indexes) changed(s *scopeIndex) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if known, _ := x.known.Peek(s.key); known == s { // else it was let go of meanwhile
		x.weigh(s)
	}
}

// weigh counts an index anew, and lets go of those that were not used for longest. x.mu is held, and the index does not change.
func (x *Indexes) weigh(s *scopeIndex) {
	bytes := s.index.Bytes() + scopeIndexBytes + int64(len(s.key.scope.User)+len(s.key.scope.Agent)+len(s.key.scope.Run))
	x.bytes += bytes - s.bytes
	s.bytes = bytes
	for _, other := range x.known.Backward() {
		if x.bytes <= x.limit {
			break
		}
		if other != s {
			x.drop(other)
		}
	}
}

// drop lets go of an index. x.mu is held.
func (x *Indexes) drop(s *scopeIndex) {
	x.bytes -= s.bytes
	x.known.Delete(s.key)
}

// dropStore lets go of a store's indexes.
func (x *Indexes) dropStore(store *Local) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key, s := range x.known.All() {
		if key.store == store {
			x.drop(s)
		}
	}
}

// rank calls f with the index of a scope as it is now. f must not change it and must not keep it.
func (l *Local) rank(ctx context.Context, scope Scope, f func(x *index.Index, space Space) error) error {
	s := l.indexes.of(l, scope)
	if err := s.follow(ctx, l); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return f(s.index, s.state.Space)
}

// follow brings the index up to date. What is read from the beginning is put into a new one, while others go on reading the old.
func (s *scopeIndex) follow(ctx context.Context, l *Local) error {
	s.following.Lock()
	defer s.following.Unlock()
	since := s.state.Version
	if s.index.Wasted() {
		since = 0
	}
	news, err := s.read(ctx, l, since)
	if had := s.state.Space; err == nil && news.fresh == nil && had != (Space{}) && news.state.Space != had {
		news, err = s.read(ctx, l, 0) // vectors of another length have no place in the index
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if news.fresh != nil {
		s.index = news.fresh
	}
	for _, id := range news.removed {
		s.index.Remove(id)
	}
	for _, e := range news.changed {
		s.index.Put(e)
	}
	if news.fresh != nil || s.state != news.state {
		s.state = news.state
		l.indexes.changed(s)
	}
	return nil
}

// news is what has changed since a version.
type news struct {
	state   State
	fresh   *index.Index // all; nil: what follows has changed
	removed []string
	changed []*index.Entry
}

func (s *scopeIndex) read(ctx context.Context, l *Local, since int64) (n news, err error) {
	n.state, err = l.backend.Follow(ctx, s.key.scope, since, Changes{
		Reset:  func() { n.fresh = index.New() },
		Remove: func(id string) { n.removed = append(n.removed, id) },
		Put: func(r *Record) {
			e := entryOf(r)
			if n.fresh != nil {
				n.fresh.Put(e)
				return
			}
			e.Vector = append([]float32(nil), e.Vector...)
			n.changed = append(n.changed, e)
		},
	})
	return n, err
}

func entryOf(r *Record) *index.Entry {
	m := &r.Memory
	return &index.Entry{
		ID: m.ID, Text: m.Text, Entities: r.Entities, Second: m.Role == string(Assistant),
		Created: m.CreatedAt, Expires: m.ExpiresAt, Vector: r.Vector,
	}
}
