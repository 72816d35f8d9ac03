package evict

import (
	"sync"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/base/lru"
)

// DefaultRequests is how many requests a [Registry] remembers, about 200 bytes each.
const DefaultRequests = 100_000

// Registry remembers in which scope requests were sent. Those that were neither added nor found for longest are forgotten first. It is
// safe for concurrent use.
type Registry struct {
	mu       sync.Mutex
	requests *lru.Cache[string, contextpilot.Scope] // guarded by mu
}

// NewRegistry returns a registry of so many requests; 0 or less: DefaultRequests.
func NewRegistry(requests int) *Registry {
	if requests <= 0 {
		requests = DefaultRequests
	}
	return &Registry{requests: lru.New[string, contextpilot.Scope](requests)}
}

// Add remembers a request. An ID that was added before is in the new scope from then on; an empty one is not remembered.
func (r *Registry) Add(id string, scope contextpilot.Scope) {
	if id == "" || len(id) > MaxID {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests.Put(id, scope)
}

// Find returns the scope of a request, which is remembered for longer by it.
func (r *Registry) Find(id string) (contextpilot.Scope, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests.Get(id)
}

// Drop forgets a request.
func (r *Registry) Drop(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests.Delete(id)
}
