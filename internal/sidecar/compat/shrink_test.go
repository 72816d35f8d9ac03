package compat_test

import (
	"fmt"
	"net/http"
	"runtime"
	"testing"

	"github.com/ragpilot/ragpilot/internal/base/budget"
	"github.com/ragpilot/ragpilot/internal/sidecar/compat"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// fresh returns n contexts of so many documents each that no other call has.
func fresh(next *int, n, docs int) object {
	out := make(lists, n)
	for i := range out {
		for range docs {
			*next++
			out[i] = append(out[i], *next)
		}
	}
	return object{"contexts": out}
}

// The heap follows the budget when many tenants have had their turn: tables give back what they held at their peak.
func TestHeapFollowsBudget(t *testing.T) {
	testkit.NotUnderRace(t)
	const limit = 8 << 20
	for name, c := range map[string]struct{ tenants, batches, contexts, docs int }{
		"many tenants":      {60, 4, 10, 100},
		"large tenants":     {6, 4, 50, 200},
		"short contexts":    {40, 4, 200, 2},
		"over the limit":    {4, 1, 400, 200},
		"one tenant, again": {1, 60, 20, 100},
	} {
		t.Run(name, func(t *testing.T) {
			b := budget.New(limit)
			api := compat.New(compat.Options{Memory: b})
			next := 0
			before := heap()
			for i := range c.tenants {
				for range c.batches {
					code, out, raw := ask(t.Context(), t, api, fmt.Sprint("tenant", i), "/reorder", fresh(&next, c.contexts, c.docs))
					if code != http.StatusOK || len(out.Reordered) != c.contexts {
						t.Fatalf("status %d, %d contexts: %.200s", code, len(out.Reordered), raw)
					}
				}
			}
			grown, counted := heap()-before, b.Tables()["reorder"].Bytes
			t.Logf("%d bytes of heap, %d counted, limit %d", grown, counted, limit)
			if grown > limit*13/10 {
				t.Errorf("%d bytes of heap, %d counted, limit %d", grown, counted, limit)
			}
			if counted > limit {
				t.Errorf("%d bytes are counted, limit %d", counted, limit)
			}
			runtime.KeepAlive(api)
		})
	}
}

// A tenant that has lost everything counts for nothing, also the documents that the root of its first batch has, and can go on.
func TestEmptyIndexHasNoWeight(t *testing.T) {
	const limit = 100_000
	b := budget.New(limit)
	api := compat.New(compat.Options{Memory: b})
	shared := make([]int, 2000)
	for i := range shared {
		shared[i] = i
	}
	batch := lists{append(shared[:2000:2000], 5000), append(shared[:2000:2000], 5001)}
	first := do(t, api, "/reorder", object{"contexts": batch})
	check(t, "contexts", 2, len(first.Reordered))
	check(t, "bytes", 0, int(b.Held("")))
	gone := do(t, api, "/evict", object{"request_ids": first.RequestIDs})
	check(t, "evicted already", first.RequestIDs, gone.NotFound)
	again := do(t, api, "/reorder", object{"contexts": lists{{1, 2}, {1, 3}}})
	check(t, "evicted", 2, do(t, api, "/evict", object{"request_ids": again.RequestIDs}).Removed)
}
