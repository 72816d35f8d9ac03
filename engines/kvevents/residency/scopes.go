package residency

import (
	"maps"
	"sync"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/base/lru"
)

// Scopes knows in which scopes requests were planned: one cache serves several tenants, and models that are adapters of one.
// It is safe for concurrent use.
type Scopes struct {
	mu       sync.Mutex // guards what follows
	requests *lru.Cache[string, contextpilot.Scope]
	known    map[contextpilot.Scope]bool
}

// maxScopes bounds the scopes that a clearing is reported to. A pilot keeps fewer.
const maxScopes = 10_000

// NewScopes returns one that remembers so many requests, those added last; 0 or less: [DefaultMaxRequests].
func NewScopes(requests int) *Scopes {
	if requests <= 0 {
		requests = DefaultMaxRequests
	}
	return &Scopes{requests: lru.New[string, contextpilot.Scope](requests), known: make(map[contextpilot.Scope]bool)}
}

// Add remembers a request's scope. An ID that was added before is in the new scope from then on.
func (s *Scopes) Add(id string, scope contextpilot.Scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests.Put(id, scope)
	if len(s.known) < maxScopes {
		s.known[scope] = true
	}
}

// Events converts updates for [contextpilot.Pilot.Observe], each for the scope of its request, as [Events] does for one scope.
// A clearing is reported to every scope that a request was ever added in, to the zero Scope if there is none. Updates of requests
// that are not known are left out.
func (s *Scopes) Events(updates []Update) []contextpilot.Event {
	events := make([]contextpilot.Event, 0, len(updates))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range updates {
		if u.Cleared != 0 {
			if len(s.known) == 0 {
				events = append(events, Events(contextpilot.Scope{}, []Update{u})...)
			}
			for scope := range maps.Keys(s.known) {
				events = append(events, Events(scope, []Update{u})...)
			}
			continue
		}
		scope, ok := s.requests.Get(u.RequestID)
		if !ok {
			continue
		}
		if u.Lost {
			s.requests.Delete(u.RequestID)
		}
		events = append(events, Events(scope, []Update{u})...)
	}
	return events
}
