//go:build !race

package sim_test

import (
	"testing"

	"github.com/ragpilot/ragpilot/engines/sim"
)

// TestAllocations keeps the per-request path lean: what is left is the answer, its ID, the events, and the bookkeeping
// of the request, none of which grows with the prompt. Under the race detector pools forget at random, and nothing
// can be counted.
func TestAllocations(t *testing.T) {
	all := passages()
	e := sim.New(sim.Options{CapacityTokens: 20_000})
	req := retrieval(1, 15, all)
	if n := testing.AllocsPerRun(50, func() {
		if _, err := e.Generate(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
	}); n > 5 {
		t.Errorf("%v allocations for a cached prompt of 2,000 tokens, want at most 5", n)
	}
}
