package proxy

import (
	"context"
	"sync"

	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/internal/budget"
	"github.com/ragpilot/ragpilot/internal/cluster"
	"github.com/ragpilot/ragpilot/internal/lru"
	"github.com/ragpilot/ragpilot/internal/recorded"
)

// toolIndex orders the documents of conversations' first tool results after those of earlier ones, as the reference
// does. Nothing is gained in a prefix cache by that, as the results stand behind different questions; the order follows
// the recordings for what reuses blocks at any place. Safe for concurrent use.
type toolIndex struct {
	mu      sync.Mutex // guards all below
	index   *recorded.Index
	numbers recorded.Numbers[content]
	part    *budget.Part
	bytes   int // that part has counted
}

// results are the tenants' indices of tool results. Safe for concurrent use.
type results struct {
	memory *budget.Budget

	mu      sync.Mutex
	tenants *lru.Cache[string, *resultIndices]
}

// resultIndices are a tenant's, nil until they are used: of what is sent, and of what shadow mode has not sent so.
type resultIndices struct{ sent, shadow *toolIndex }

func (r *resultIndices) close() {
	for _, x := range []*toolIndex{r.sent, r.shadow} {
		if x != nil {
			x.part.Close()
		}
	}
}

func newResults(memory *budget.Budget, tenants int) *results {
	return &results{memory: memory, tenants: lru.New[string, *resultIndices](tenants)}
}

// of returns what orders a tenant's tool results; the first request's controls rule.
func (r *results) of(tenant string, ctl *control, shadow bool) func(context.Context, []content) []int {
	return func(ctx context.Context, keys []content) []int {
		defer r.memory.Settle()
		return r.index(tenant, ctl, shadow).order(ctx, keys)
	}
}

func (r *results) index(tenant string, ctl *control, shadow bool) *toolIndex {
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
		alpha, linkage := cluster.DefaultAlpha, cluster.Average
		if ctl.alpha > 0 {
			alpha = ctl.alpha
		}
		if l, err := cluster.ParseLinkage(ctl.linkage); err == nil && ctl.linkage != "" {
			linkage = l
		}
		x := newToolIndex(maxToolResults, alpha, linkage)
		x.part = r.memory.Part(tenant, "tool_results", x.dropOldest)
		*index = x
	}
	return *index
}

// forget drops a tenant's.
func (r *results) forget(tenant string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of, ok := r.tenants.Get(tenant); ok {
		r.tenants.Delete(tenant)
		of.close()
	}
}

// content stands for a document.
type content = conversation.Sum

// maxToolResults bounds the index of tool results.
const maxToolResults = 20_000

// weigh gives back what tables keep of their peak and counts what the index takes now. The lock is held.
func (x *toolIndex) weigh() {
	recorded.Shrink(x.index, &x.numbers)
	now := x.index.Weight() + x.numbers.Weight()
	if x.part != nil {
		x.part.Add(now - x.bytes)
	}
	x.bytes = now
}

// dropOldest is for the budget.
func (x *toolIndex) dropOldest() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.bytes
	if !x.index.DropOldest() {
		return 0
	}
	x.weigh()
	return before - x.bytes
}

// newToolIndex returns an index that remembers so many results.
func newToolIndex(limit int, alpha float64, linkage cluster.Linkage) *toolIndex {
	x := &toolIndex{}
	x.index = recorded.NewIndex(cluster.Options{Alpha: alpha, Linkage: linkage, Hold: x.numbers.Hold})
	x.index.Bound(limit)
	return x
}

// order returns the places of the documents in the order to send, and remembers them. Repeated keys and a failure
// leave the order as it is; if ctx has ended, there is none.
func (x *toolIndex) order(ctx context.Context, keys []content) []int {
	same := make([]int, len(keys))
	docs := make([]cluster.Doc, len(keys))
	place := make(map[cluster.Doc]int, len(keys))
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
	st, err := x.index.Add(ctx, [][]cluster.Doc{docs})
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
