package recorded

import (
	"context"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/internal/base/budget"
	"github.com/ragpilot/ragpilot/internal/base/lru"
	"github.com/ragpilot/ragpilot/internal/paper"
)

// Results orders the documents of conversations' first tool results after those of earlier ones, for each tenant. Nothing is
// gained in a prefix cache by that, as the results stand behind different questions. Safe for concurrent use.
type Results struct {
	memory *budget.Budget

	mu      sync.Mutex
	tenants *lru.Cache[string, *resultIndices]
}

// resultIndices are a tenant's, nil until they are used: of what is sent, and of what shadow mode has not sent so.
type resultIndices struct{ sent, shadow *resultIndex }

func (r *resultIndices) close() {
	for _, x := range []*resultIndex{r.sent, r.shadow} {
		if x != nil {
			x.part.Close()
		}
	}
}

// NewResults returns Results of so many tenants (0: 64), which count in a budget.
func NewResults(memory *budget.Budget, tenants int) *Results {
	if tenants <= 0 {
		tenants = 64
	}
	return &Results{memory: memory, tenants: lru.New[string, *resultIndices](tenants)}
}

// Order returns what orders a tenant's results by the documents' contents: the places of the documents in the order to send, nil
// if the context has ended. The alpha and the linkage rule of the first request hold; 0 and "" are the defaults.
func (r *Results) Order(tenant string, alpha float64, linkage string, shadow bool) func(context.Context, []xxh3.Uint128) []int {
	return func(ctx context.Context, keys []xxh3.Uint128) []int {
		defer r.memory.Settle()
		return r.index(tenant, alpha, linkage, shadow).order(ctx, keys)
	}
}

func (r *Results) index(tenant string, alpha float64, linkage string, shadow bool) *resultIndex {
	r.mu.Lock()
	defer r.mu.Unlock()
	of, ok := r.tenants.Get(tenant)
	if !ok {
		of = new(resultIndices)
		if _, gone, full := r.tenants.Put(tenant, of); full {
			gone.close()
		}
	}
	index := &of.sent
	if shadow {
		index = &of.shadow
	}
	if *index == nil {
		if alpha <= 0 {
			alpha = paper.DefaultAlpha
		}
		link, err := paper.ParseLinkage(linkage)
		if err != nil || linkage == "" {
			link = paper.Average
		}
		x := newResultIndex(maxResults, alpha, link)
		x.part = r.memory.Part(tenant, "tool_results", x.dropOldest)
		*index = x
	}
	return *index
}

// Forget drops a tenant's.
func (r *Results) Forget(tenant string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of, ok := r.tenants.Get(tenant); ok {
		r.tenants.Delete(tenant)
		of.close()
	}
}

// resultIndex is an index of tool results.
type resultIndex struct {
	mu      sync.Mutex // guards all below
	index   *Index
	numbers Numbers[xxh3.Uint128]
	part    *budget.Part
	bytes   int // that part has counted
}

// maxResults bounds the index of tool results.
const maxResults = 20_000

// weigh gives back what tables keep of their peak and counts what the index takes now. The lock is held.
func (x *resultIndex) weigh() {
	Shrink(x.index, &x.numbers)
	now := x.index.Weight() + x.numbers.Weight()
	if x.part != nil {
		x.part.Add(now - x.bytes)
	}
	x.bytes = now
}

// dropOldest is for the budget.
func (x *resultIndex) dropOldest() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.bytes
	if !x.index.DropOldest() {
		return 0
	}
	x.weigh()
	return before - x.bytes
}

// newResultIndex returns an index that remembers so many results.
func newResultIndex(limit int, alpha float64, linkage paper.Linkage) *resultIndex {
	x := &resultIndex{}
	x.index = NewIndex(paper.Options{Alpha: alpha, Linkage: linkage, Hold: x.numbers.Hold})
	x.index.Bound(limit)
	return x
}

// order returns the places of the documents in the order to send, and remembers them. Repeated keys and a failure
// leave the order as it is; if ctx has ended, there is none.
func (x *resultIndex) order(ctx context.Context, keys []xxh3.Uint128) []int {
	same := make([]int, len(keys))
	docs := make([]paper.Doc, len(keys))
	place := make(map[paper.Doc]int, len(keys))
	x.mu.Lock()
	defer x.mu.Unlock()
	defer x.weigh() // after the numbers are dropped
	for i, k := range keys {
		docs[i], _ = x.numbers.Take(k)
		defer x.numbers.Drop(docs[i])
		same[i], place[docs[i]] = i, i
	}
	if len(place) < len(keys) {
		return same
	}
	st, err := x.index.Add(ctx, [][]paper.Doc{docs})
	if ctx.Err() != nil {
		return nil
	}
	if err != nil || len(st.Orders[0]) != len(keys) {
		return same
	}
	out := make([]int, len(keys))
	for i, d := range st.Orders[0] {
		out[i] = place[d]
	}
	return out
}
