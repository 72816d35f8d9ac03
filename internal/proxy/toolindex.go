package proxy

import (
	"context"
	"sync"

	"github.com/ragpilot/ragpilot/internal/budget"
	"github.com/ragpilot/ragpilot/internal/cluster"
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

// toolIndex returns the tenant's index of tool results, or that of those that shadow mode has not sent so; the first
// request's controls rule.
func (p *Proxy) toolIndex(tenant string, ctl *control, shadow bool) *toolIndex {
	s := p.state(tenant)
	s.mu.Lock()
	defer s.mu.Unlock()
	index := &s.index
	if shadow {
		index = &s.shadow
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
		x.part = p.opt.Memory.Part(tenant, "tool_results", x.dropOldest)
		if s.parts = append(s.parts, x.part); s.gone {
			x.part.Close()
		}
		*index = x
	}
	return *index
}

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
