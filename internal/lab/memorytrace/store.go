package memorytrace

import (
	"context"

	"github.com/ragpilot/ragpilot/memory"
)

// recorded is a store whose searches find what the trace has, in its order; all else is the store's own.
type recorded struct {
	memory.Store
	found []string // IDs of memories, for the search that comes next
}

// Search returns the first k of what was recorded, with scores that fall.
func (r *recorded) Search(ctx context.Context, _ memory.Scope, _ string, k int, _ memory.SearchOptions) ([]memory.Hit, error) {
	n := min(k, len(r.found))
	hits := make([]memory.Hit, n)
	for i, id := range r.found[:n] {
		m, err := r.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		hits[i] = memory.Hit{Memory: m, Score: 1 - float64(i)/float64(n)}
	}
	return hits, nil
}

// nothing is a chain's memory without a history: each request of such a trace is a conversation of its own.
type nothing struct{}

func (nothing) GetMemoryKey(context.Context) string      { return "history" }
func (nothing) MemoryVariables(context.Context) []string { return nil }
func (nothing) Clear(context.Context) error              { return nil }

func (nothing) LoadMemoryVariables(context.Context, map[string]any) (map[string]any, error) {
	return map[string]any{}, nil
}

func (nothing) SaveContext(context.Context, map[string]any, map[string]any) error { return nil }
