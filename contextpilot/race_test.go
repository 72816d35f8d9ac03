package contextpilot_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// Everything that is said to be safe for concurrent use, at once, over shared sessions and scopes. Run it with -race.
func TestConcurrentUse(t *testing.T) {
	for _, policy := range contextpilot.PolicyNames() {
		t.Run(policy, func(t *testing.T) {
			p := newPilot(t, contextpilot.Config{Policy: policy, MaxScopes: 2, MaxSessions: 4, MaxRequests: 50, Capacity: 5000})
			var wg sync.WaitGroup
			for g := range 8 {
				wg.Go(func() { client(t, p, g) })
			}
			wg.Wait()
			if err := p.Check(); err != nil {
				t.Error(err)
			}
			st := p.Stats()
			if st.Plans+st.Unclaimed != 8*(60+6*3) || st.Faults() != 0 || st.Sessions > 4 || st.Scopes > 2 {
				t.Errorf("%+v", st)
			}
		})
	}
}

func client(t *testing.T, p *contextpilot.Pilot, g int) {
	check := newChecker(contextpilot.Config{BlockSize: 16})
	check.forgetful = true // other clients use the same sessions
	var prior []string
	for i := range 60 {
		req := contextpilot.Request{
			ID: fmt.Sprint(g, ".", i%50), Session: fmt.Sprint("s", (g+i)%6), Scope: contextpilot.Scope{Replica: fmt.Sprint(i % 3)},
			Blocks: blocks(fmt.Sprint(i%5), fmt.Sprint(g), fmt.Sprint("b", i%7)), Prior: prior, Query: "q",
		}
		plan := p.Plan(req)
		if err := check.check(req, plan); err != nil {
			t.Error(err)
		}
		prior = append(prior, plan.Prompt("q"))[max(0, len(prior)-6):]
		ev := contextpilot.Event{Kind: contextpilot.EventKind(1 + i%4), Scope: req.Scope, Request: plan.RequestID, Tokens: 40, Output: 5}
		if i%20 != 19 && ev.Kind == contextpilot.Cleared {
			ev.Kind = contextpilot.Served
		}
		p.Observe(ev, contextpilot.Event{Kind: contextpilot.Gone, Scope: req.Scope, Request: fmt.Sprint(7-g, ".", i)})
		p.Hold(plan)
		p.Claim(req.Session, plan.Context())
		switch i % 10 {
		case 3:
			p.EndSession(req.Scope, req.Session)
		case 5:
			batch := []contextpilot.Request{{Session: req.Session, Blocks: req.Blocks}, {Blocks: blocks("x")}, {Session: "s1"}}
			if _, err := p.PlanBatch(context.Background(), batch); err != nil {
				t.Error(err)
			}
		case 7:
			_ = p.String()
			_ = p.Stats()
		}
	}
}
