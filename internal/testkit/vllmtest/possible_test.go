//go:build unix

package vllmtest

import (
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/lab/bounds"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// TestBatchIsNearTheBound computes, without a server, how far the requests of the timing test are from what any plan of them can
// reach in a cache without limit, whatever the orders and the schedule: the share asked for of the whole batch is below it.
func TestBatchIsNearTheBound(t *testing.T) {
	requests := recorded(t, allRequests, blockTokens)
	weight := map[string]int{}
	var list []trace.Block
	var problem []trace.Request
	asked := 0
	for i, q := range requests {
		asked += tokens.Count(q.Query)
		r := trace.Request{ID: q.ID, Session: q.ID, Turn: 1}
		for k, b := range q.Blocks {
			if weight[b.ID] == 0 {
				list = append(list, trace.Block{ID: b.ID, Text: b.Text})
				weight[b.ID] = tokens.Count(trace.Doc(b.ID, b.Text))
			}
			requests[i].Blocks[k].Tokens = weight[b.ID]
			r.Docs = append(r.Docs, b.ID)
		}
		problem = append(problem, r)
	}
	blocks, err := trace.NewBlocks(list...)
	if err != nil {
		t.Fatal(err)
	}
	p := bounds.New(blocks, false)
	for _, r := range problem {
		if err := p.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	bound, err := p.Spread(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		t.Fatal(err)
	}
	batch, err := pilot.PlanBatch(t.Context(), requests)
	if err != nil {
		t.Fatal(err)
	}
	var planned, plain shared
	for i, q := range requests {
		plain.send(q.Blocks)
		plan := &batch.Plans[batch.Order[i]]
		order := make([]contextpilot.Block, len(plan.Items))
		for k, item := range plan.Items {
			order[k] = plan.Block(item.Index)
		}
		planned.send(order)
	}
	derived := func(saved int) float64 {
		return requestMillis*allRequests + tokenMillis*float64(p.Tokens-saved+asked)
	}
	t.Logf("document tokens %d; saved in plain order %d, by the batch %d, at most %d", p.Tokens, plain.saved, planned.saved, bound)
	t.Logf("mean time to the first token of plain order's, by %d ms and %v ms a token: batch %.3f, any plan at least %.3f, asked for %.2f",
		requestMillis, tokenMillis, derived(planned.saved)/derived(plain.saved), derived(bound)/derived(plain.saved), batchShare)
	if planned.saved > bound || float64(planned.saved) < 0.9*float64(bound) {
		t.Errorf("the batch saves %d, no plan more than %d: want at least 90 %% of it", planned.saved, bound)
	}
}

// shared counts what prompts share with those before them.
type shared struct {
	known map[string]bool // beginnings
	saved int
}

func (s *shared) send(blocks []contextpilot.Block) {
	if s.known == nil {
		s.known = map[string]bool{}
	}
	path := ""
	for _, b := range blocks {
		path += b.ID + " "
		if s.known[path] {
			s.saved += b.Tokens
		}
		s.known[path] = true
	}
}
