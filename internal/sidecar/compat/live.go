package compat

import (
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/internal/base/budget"
	"github.com/ragpilot/ragpilot/internal/paper"
	"github.com/ragpilot/ragpilot/internal/sidecar/compat/recorded"
)

// holdFor is about how long the lock of a state is held at a time.
const holdFor = time.Millisecond

// state is what is kept for one tenant.
type state struct {
	mu    sync.Mutex
	since time.Time // when the lock was taken; guarded by mu, as all below

	part  *budget.Part // nil: the state is not kept
	bytes int          // that part has counted

	limit  int
	live   *generation
	begun  bool // there was an index before the last reset
	chains *recorded.Chains[key]
	times  []float64 // to the first token, in milliseconds; a ring when full
	oldest int       // where the ring begins
	chars  int       // characters saved, by all requests since the last reset of times
}

// generation is an index from one reset to the next. Requests that began before a reset end in the old one.
type generation struct {
	index *recorded.Index
	docs  *recorded.Numbers[key]
}

func newState(limit int) *state {
	return &state{limit: limit, live: newGeneration(limit), chains: recorded.NewChains[key](limit)}
}

func newGeneration(limit int) *generation {
	docs := new(recorded.Numbers[key])
	g := &generation{docs: docs, index: recorded.NewIndex(paper.Options{Alpha: paper.DefaultAlpha, Hold: docs.Hold})}
	g.index.Bound(limit)
	return g
}

// Lock, Unlock and Pause make the state the recorded.Lock of its index.
func (s *state) Lock() {
	s.mu.Lock()
	s.since = time.Now()
}

// Unlock releases the state.
func (s *state) Unlock() { s.mu.Unlock() }

// Pause lets others in if the lock was held for long.
func (s *state) Pause() {
	if time.Since(s.since) > holdFor {
		s.Unlock()
		s.Lock() // a waiter of more than a millisecond gets it first
	}
}

func (s *state) initialized() bool {
	s.Lock()
	defer s.Unlock()
	return s.hasIndex()
}

// hasIndex is initialized for who holds the lock.
func (s *state) hasIndex() bool { return s.begun || s.live.index.Live() }

func (s *state) track(id string) {
	s.Lock()
	defer s.Unlock()
	if s.hasIndex() {
		s.live.index.Track(id)
	}
}

// take numbers a batch's documents for the live index and returns it with an ID for each context. Until drop the
// numbers stay as they are.
func (s *state) take(b *batch) (*generation, []string) {
	s.Lock()
	defer s.Unlock()
	g := s.live
	for i := range b.docs {
		b.docs[i].live, b.docs[i].seen = g.docs.Take(b.docs[i].key)
		s.Pause()
	}
	ids := make([]string, len(b.contexts))
	for i := range ids {
		for ids[i] == "" || g.index.Known(ids[i]) {
			ids[i] = NewRequestID()
		}
	}
	return g, ids
}

func (s *state) drop(g *generation, b *batch) {
	s.Lock()
	defer s.Unlock()
	for _, d := range b.docs {
		g.docs.Drop(d.live)
		s.Pause()
	}
}
