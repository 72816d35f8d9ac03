package contextpilot_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// said is a conversation up to some turn.
type said struct {
	messages []string
	at       contextpilot.Position
}

// Everything that is said to be safe for concurrent use, at once, over shared scopes and positions. Run it with -race.
func TestConcurrentUse(t *testing.T) {
	for _, policy := range contextpilot.PolicyNames() {
		t.Run(policy, func(t *testing.T) {
			p := newPilot(t, contextpilot.Config{Policy: policy, MaxScopes: 2, MaxRequests: 50, Capacity: 5000})
			var wg sync.WaitGroup
			var shared atomic.Pointer[said]
			var taken, refs atomic.Int64
			shared.Store(&said{})
			for g := range 8 {
				wg.Go(func() { client(t, p, g, &shared, &taken, &refs) })
			}
			wg.Wait()
			if err := p.Check(); err != nil {
				t.Error(err)
			}
			st := p.Stats()
			if st.Plans != 8*(60+6*3)-taken.Load() || st.Faults() != 0 || st.Scopes > 2 || refs.Load() < 100 {
				t.Errorf("%d taken back, %d references: %+v", taken.Load(), refs.Load(), st)
			}
		})
	}
}

// client goes on with its own conversation, or with the one that went on last.
func client(t *testing.T, p *contextpilot.Pilot, g int, shared *atomic.Pointer[said], taken, refs *atomic.Int64) {
	check := newChecker(contextpilot.Config{BlockSize: 16})
	own := &said{}
	for i := range 60 {
		from := own
		if i%3 == 0 {
			from = shared.Load()
		}
		req := contextpilot.Request{
			ID: fmt.Sprint(g, ".", i%50), Session: fmt.Sprint("s", (g+i)%6), Scope: contextpilot.Scope{Replica: fmt.Sprint(i % 3)},
			Blocks: blocks(fmt.Sprint(i%5), fmt.Sprint(g), fmt.Sprint("b", i%7)), Prior: from.messages, Behind: from.at, Query: "q",
		}
		plan := p.Plan(req)
		if err := check.check(req, plan); err != nil {
			t.Error(err)
		}
		if plan.Items != nil && plan.Items[len(plan.Items)-1].Ref != nil {
			refs.Add(1)
		}
		ev := contextpilot.Event{Kind: contextpilot.EventKind(1 + i%4), Scope: req.Scope, Request: plan.RequestID, Tokens: 40, Output: 5}
		if i%20 != 19 && ev.Kind == contextpilot.Cleared {
			ev.Kind = contextpilot.Served
		}
		p.Observe(ev, contextpilot.Event{Kind: contextpilot.Gone, Scope: req.Scope, Request: fmt.Sprint(7-g, ".", i)})
		messages := append(slices.Clone(from.messages), plan.Prompt("q"))
		own = &said{messages[max(0, len(messages)-6):], plan.End.Answered(5)}
		shared.Store(own)
		switch i % 10 {
		case 1:
			own = &said{own.messages[len(own.messages)-1:], p.Behind(contextpilot.Position{}, &plan, plan.Prompt("q"))}
		case 3:
			if p.TakeBack(&plan) {
				taken.Add(1)
			}
			own = from
		case 5:
			batch := []contextpilot.Request{{Session: req.Session, Blocks: req.Blocks}, {Blocks: blocks("x")}, {Session: "s1", Behind: own.at}}
			if _, err := p.PlanBatch(context.Background(), batch); err != nil {
				t.Error(err)
			}
		case 7:
			_ = p.String()
			_ = p.Stats()
		}
	}
}
