package contextpilot_test

import (
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// A prompt that is sent again and again stays when the index is full.
func TestResend(t *testing.T) {
	p := newPilot(t, contextpilot.Config{MaxRequests: 2})
	hot, other := contextpilot.Scope{Model: "hot"}, contextpilot.Scope{Model: "other"}
	p.Plan(contextpilot.Request{ID: "hot", Scope: hot, Blocks: blocks("a", "b")})
	want, _ := p.Resident(hot, "hot")
	for _, id := range []string{"1", "2", "3"} {
		p.Plan(contextpilot.Request{ID: id, Scope: hot, Blocks: blocks("a", "c")})
		if tokens, live := p.Resend(hot, "hot"); tokens != want || want == 0 || !live {
			t.Fatalf("%s: %d tokens of %d are left, live %v", id, tokens, want, live)
		}
	}
	if _, live := p.Resident(hot, "2"); live {
		t.Error("what was sent once is live: the test shows nothing")
	}
	if s := p.Stats(); s.Plans != 4 || s.LiveRequests != 2 {
		t.Errorf("%d plans, %d live requests", s.Plans, s.LiveRequests)
	}
	p.Observe(contextpilot.Event{Kind: contextpilot.Shrunk, Scope: hot, Request: "hot", Tokens: 64})
	if tokens, live := p.Resend(hot, "hot"); tokens != 64 || !live {
		t.Errorf("shrunk: %d tokens, live %v", tokens, live)
	}
	for _, scope := range []contextpilot.Scope{hot, other} {
		if tokens, live := p.Resend(scope, "unknown"); tokens != 0 || live {
			t.Errorf("a request that nobody planned in %v: %d tokens, live %v", scope, tokens, live)
		}
	}
	if n := p.Stats().Scopes; n != 1 {
		t.Errorf("%d scopes, want that of the only plans", n)
	}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
}

// A scope whose prompts are sent again is one that is used.
func TestResendKeepsTheScope(t *testing.T) {
	now := time.Unix(0, 0)
	p := newPilot(t, contextpilot.Config{MaxScopes: 2, Now: func() time.Time { return now }})
	for _, model := range []string{"hot", "other", "third"} {
		p.Plan(contextpilot.Request{ID: model, Scope: contextpilot.Scope{Model: model}, Blocks: blocks("a", "b")})
		now = now.Add(time.Minute)
		if _, live := p.Resend(contextpilot.Scope{Model: "hot"}, "hot"); !live {
			t.Errorf("after %s the first scope is gone", model)
		}
		now = now.Add(time.Minute)
	}
	if _, live := p.Resident(contextpilot.Scope{Model: "other"}, "other"); live {
		t.Error("the scope that was not used is there")
	}
}
