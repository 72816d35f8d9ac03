package compat

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/engines/evict"
	"github.com/ragpilot/ragpilot/internal/base/budget"
	"github.com/ragpilot/ragpilot/internal/base/lru"
	"github.com/ragpilot/ragpilot/internal/paper"
	"github.com/ragpilot/ragpilot/internal/sidecar/compat/recorded"
	"github.com/ragpilot/ragpilot/internal/sidecar/tenant"
)

// Options configure an [API]. The zero value is a live server.
type Options struct {
	// Stateless keeps no index: /reorder clusters each batch by itself.
	Stateless bool
	// CompatIncrementalOrder keeps the reference's shape of an incremental answer, whose reordered_contexts stand in
	// input order while its original_indices are the execution order.
	CompatIncrementalOrder bool
	// Limits, if not nil, returns how many contexts a request may have, and how many documents in all its contexts together; both
	// are at least 1. It is called for each request, concurrently. nil: 4096 and 1,000,000. Of contexts there are no more than
	// 16,384, as clustering n contexts takes 6·n² bytes while it runs, and no more than MaxRequests. A single context may have 2,048
	// documents.
	Limits func() (contexts, blocks int)
	// MaxRequests is how many requests a tenant's index holds, and how many turns its histories; 0: 65,536.
	// The oldest leave, also if the rest have more than 64 documents each on average.
	MaxRequests int
	// MaxTenants is how many tenants' states are kept; 0: 64. The least recently used leaves.
	MaxTenants int
	// Memory is the budget in which all that is kept counts; nil: one of its own.
	Memory *budget.Budget
	// MaxTokens is what GET /health gives as the cache's size, and measures its use by; 0: null. It bounds nothing.
	MaxTokens int
	// Now is the clock of timestamps; nil: time.Now.
	Now func() time.Time
	// OnReset is called after a tenant's state was reset; nil: not needed. It may be called concurrently.
	OnReset func(tenant string)
	// OnEvict receives the requests that the engine has dropped, normalised, whether they are known here or not, and before
	// there is an index, too; nil: not needed. It may be called concurrently.
	OnEvict func(tenant string, ids []string)
	// OnShrunk receives a request of which only the first tokens are cached, under the same conditions; nil: not needed.
	OnShrunk func(tenant, id string, tokens int)
}

// API is an http.Handler for the endpoints. Safe for concurrent use. Nothing runs in the background.
type API struct {
	opt   Options
	large chan struct{} // a place for each large clustering under way

	mu      sync.Mutex
	tenants *lru.Cache[string, *state] // guarded by mu
}

// mostContexts is what Options.Limits may allow at most.
const mostContexts = 1 << 14

// largeBatch is the number of contexts from which clusterings wait for each other: below, they take less than 2 MB and
// some milliseconds.
const largeBatch = 512

// New returns an API without any state.
func New(opt Options) *API {
	opt.MaxRequests, opt.MaxTenants = cmp.Or(max(opt.MaxRequests, 0), 65536), cmp.Or(max(opt.MaxTenants, 0), 64)
	if opt.Limits == nil {
		opt.Limits = func() (int, int) { return 4096, 1_000_000 }
	}
	if opt.Memory == nil {
		opt.Memory = budget.New(0)
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.OnReset == nil {
		opt.OnReset = func(string) {}
	}
	if opt.OnEvict == nil {
		opt.OnEvict = func(string, []string) {}
	}
	if opt.OnShrunk == nil {
		opt.OnShrunk = func(string, string, int) {}
	}
	return &API{
		opt: opt, large: make(chan struct{}, max(runtime.GOMAXPROCS(0)/2, 1)),
		tenants: lru.New[string, *state](opt.MaxTenants),
	}
}

// limits are how many contexts a request may have now, and how many documents.
type limits struct{ contexts, blocks int }

func (a *API) limits() limits {
	contexts, blocks := a.opt.Limits()
	return limits{min(contexts, mostContexts, a.opt.MaxRequests), blocks}
}

// HasIndex reports whether a tenant's index was begun by a /reorder; a /reset does not undo that. Never when stateless.
func (a *API) HasIndex(tenant string) bool { return a.look(tenant).initialized() }

// Track remembers the ID of a request that was seen in traffic and not in /reorder, so that /requests shows it and
// /evict knows it. It is remembered as /evict will look it up, [evict.Normalize]. Without an index nothing is done.
func (a *API) Track(tenant, requestID string) {
	ids := evict.Normalize([]string{requestID})
	if len(ids) == 0 || len(requestID) > maxTrackedID {
		return
	}
	a.look(tenant).track(ids[0])
	a.weigh(tenant)
}

// RecordTTFT enters a time to the first token, and how many characters were left out of that request's prompt, into
// what /metrics/ttft shows.
func (a *API) RecordTTFT(tenant string, d time.Duration, charsSaved int) {
	a.state(tenant).addTTFT(d, charsSaved)
	a.weigh(tenant)
}

// Forget drops all that is kept of a tenant, and reports whether there was anything. Requests that run end in what they began with.
func (a *API) Forget(tenant string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, ok := a.tenants.Get(tenant)
	if ok {
		s.part.Close()
		a.tenants.Delete(tenant)
	}
	return ok
}

// state returns a tenant's state and makes one if there is none.
func (a *API) state(tenant string) *state {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, ok := a.tenants.Get(tenant)
	if !ok {
		s = newState(a.opt.MaxRequests)
		a.keep(tenant, s)
	}
	return s
}

// look returns a tenant's state, an empty one that is not kept if there is none: a question takes no place.
func (a *API) look(tenant string) *state {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s, ok := a.tenants.Get(tenant); ok {
		return s
	}
	return newState(a.opt.MaxRequests)
}

// withIndex calls a function with the state of a request's tenant, locked, or returns that there is no index.
func (a *API) withIndex(r *http.Request, do func(s *state) (any, error)) (any, error) {
	s := a.look(tenant.From(r.Context()))
	s.Lock()
	defer s.Unlock()
	if !s.hasIndex() {
		return nil, notInitialized
	}
	return do(s)
}

// cluster is [recorded.Cluster], for large batches only some at a time.
func (a *API) cluster(ctx context.Context, opt paper.Options, contexts [][]paper.Doc) (*recorded.Clustering, error) {
	if len(contexts) > largeBatch {
		select {
		case a.large <- struct{}{}:
			defer func() { <-a.large }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return recorded.Cluster(ctx, opt, contexts)
}

// maxTrackedID is the length of an ID from traffic up to which it is remembered.
const maxTrackedID = 512

// NewRequestID returns a new ID of a request: req- and 12 hexadecimal digits.
func NewRequestID() string { return randomID("req-", 6) }

func randomID(prefix string, n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return prefix + hex.EncodeToString(b)
}
