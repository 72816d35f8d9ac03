package contextpilot_test

import (
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// A prompt whose order is decided is entered as it is, whatever the policy, and others share with it as it was sent.
func TestFixedOrder(t *testing.T) {
	for _, policy := range contextpilot.PolicyNames() {
		if policy == "oracle" {
			continue // it knows nothing without a future
		}
		t.Run(policy, func(t *testing.T) {
			p := newPilot(t, contextpilot.Config{Policy: policy, Limits: contextpilot.Limits{MaxDisplacement: 1}})
			p.Plan(contextpilot.Request{ID: "other", Blocks: blocks("c", "b", "a")})
			for range 2 { // the second time it is live
				plan := p.Plan(contextpilot.Request{ID: "1", Fixed: true, Blocks: blocks("b", "c", "a", "d")})
				var got []int
				for _, it := range plan.Items {
					got = append(got, it.Index)
				}
				if !slices.Equal(got, []int{0, 1, 2, 3}) || plan.Fault != nil {
					t.Errorf("sent in the order %v, fault %v", got, plan.Fault)
				}
			}
			if tokens, live := p.Resident(contextpilot.Scope{}, "1"); tokens < 128 || !live {
				t.Errorf("%d tokens of it are in the index, live %v", tokens, live)
			}
			p.Observe(contextpilot.Event{Kind: contextpilot.Shrunk, Request: "1", Tokens: 64})
			if tokens, live := p.Resident(contextpilot.Scope{}, "1"); tokens != 64 || !live {
				t.Errorf("%d tokens are left, live %v", tokens, live)
			}
			if got := p.Plan(contextpilot.Request{ID: "2", Fixed: true, Blocks: blocks("b", "c", "x")}).Prefix.Blocks; got != 2 {
				t.Errorf("shares %d blocks, want 2", got)
			}
			p.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: "1"})
			if _, live := p.Resident(contextpilot.Scope{}, "1"); live {
				t.Error("it is live after it has gone")
			}
			if _, live := p.Resident(contextpilot.Scope{Model: "none"}, "1"); live {
				t.Error("live in a scope that is not there")
			}
			if err := p.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A batch runs requests of a fixed order next to those that share their prefix, like others.
func TestFixedOrdersOfABatch(t *testing.T) {
	for _, policy := range contextpilot.PolicyNames() {
		if policy == "oracle" {
			continue // it knows nothing without a future
		}
		p := newPilot(t, contextpilot.Config{Policy: policy})
		var reqs []contextpilot.Request
		for _, ids := range [][]string{{"x", "1"}, {"y", "2"}, {"x", "3"}, {"y", "4"}} {
			reqs = append(reqs, contextpilot.Request{Fixed: true, Blocks: blocks(ids...)})
		}
		b, err := p.PlanBatch(t.Context(), reqs)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, policy+": order", []int{0, 2, 1, 3}, b.Order)
		equal(t, policy+": groups", [][]int{{0, 2}, {1, 3}}, b.Groups)
	}
}
