package proxy

import (
	"context"
	"sync"

	"github.com/ragpilot/ragpilot/internal/cluster"
	"github.com/ragpilot/ragpilot/internal/recorded"
)

// toolIndex orders the documents of conversations' first tool results after those of earlier ones, as the reference
// does. Nothing is gained in a prefix cache by that, as the results stand behind different questions; the order follows
// the recordings for what reuses blocks at any place. Safe for concurrent use.
type toolIndex struct {
	mu      sync.Mutex
	index   *recorded.Index
	numbers recorded.Numbers[content]
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
