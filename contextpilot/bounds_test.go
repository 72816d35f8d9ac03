package contextpilot_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// clock is a time that tests move.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func TestMaxScopes(t *testing.T) {
	c := &clock{now: time.Unix(1_700_000_000, 0)}
	p := newPilot(t, contextpilot.Config{MaxScopes: 2, Now: c.Now})
	resident := func(model string) bool {
		c.now = c.now.Add(time.Minute)
		got := p.Plan(contextpilot.Request{Scope: contextpilot.Scope{Model: model}, Blocks: blocks("a")})
		return got.Prefix.Blocks == 1
	}
	for i := range 50 {
		resident(fmt.Sprint(i))
		if n := p.Stats().Scopes; n > 2 {
			t.Fatalf("%d scopes", n)
		}
	}
	equal(t, "dropped", 48, p.Stats().ScopesDropped)
	equal(t, "a scope that is left", true, resident("48"))
	equal(t, "a new one", false, resident("new"))
	equal(t, "the one used before it", true, resident("48"))
	equal(t, "the least recently used went", false, resident("49"))
}

// Scopes share nothing; a conversation can go on in any.
func TestScopes(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	plan := func(id string, s contextpilot.Scope, behind contextpilot.Position, prior ...string) contextpilot.Plan {
		return p.Plan(contextpilot.Request{ID: id, Session: "s", Scope: s, Blocks: blocks("a", "b"), Prior: prior, Behind: behind})
	}
	one := plan("1", contextpilot.Scope{Tenant: "x"}, contextpilot.Position{})
	shown := one.Prompt("q")
	other := plan("2", contextpilot.Scope{Tenant: "y"}, contextpilot.Position{}, shown)
	equal(t, "another conversation of that session", "b a; ", sent(other)+"; "+refs(other))
	moved := plan("4", contextpilot.Scope{Tenant: "x", Replica: "2"}, one.End, shown)
	equal(t, "the conversation on another replica", "; a b", sent(moved)+"; "+refs(moved))
	equal(t, "events name their scope", 0, p.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: "1"}))
	equal(t, "or the sink does", int64(3), p.Stats().LiveRequests)
	p.Sink(contextpilot.Scope{Tenant: "x"})(contextpilot.Event{Kind: contextpilot.Gone, Request: "1"})
	equal(t, "gone", int64(2), p.Stats().LiveRequests)
}

func TestMaxRequests(t *testing.T) {
	for _, policy := range contextpilot.PolicyNames() {
		p := newPilot(t, contextpilot.Config{Policy: policy, MaxRequests: 5})
		for i := range 40 {
			p.Plan(contextpilot.Request{ID: fmt.Sprint(i), Blocks: blocks(fmt.Sprint(i), fmt.Sprint(i%3))})
			if n := p.Stats().LiveRequests; n > 5 {
				t.Fatalf("%d requests", n)
			}
		}
		equal(t, "the oldest went", 0, p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: "34"}))
		equal(t, "the newest are there", 1, p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: "35"}))
		if st := p.Stats(); st.Nodes > 15 || st.EventsUnknown != 1 {
			t.Errorf("%s: %+v", policy, st)
		}
		if err := p.Check(); err != nil {
			t.Error(err)
		}
	}
}

func TestCapacity(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Policy: "retrieval", Capacity: 100, BlockSize: 1})
	plan := func(ids ...string) int { return p.Plan(contextpilot.Request{Blocks: blocks(ids...)}).Prefix.Blocks }
	plan("a", "b")
	equal(t, "all fits", 2, plan("a", "b"))
	plan("c", "d", "e")
	if n := p.Stats().IndexTokens; n > 100 {
		t.Errorf("%d tokens", n)
	}
	equal(t, "driven out", 0, plan("a", "b"))
	equal(t, "a prompt larger than the cache", 0, plan("f", "g", "h", "i"))
	equal(t, "leaves its beginning at most", true, plan("f", "g", "h", "i") <= 3)
	if err := p.Check(); err != nil {
		t.Error(err)
	}
}

// Numbers come from callers and engines; absurd ones must not wrap around.
func TestAbsurdNumbers(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Capacity: 1000})
	huge := []contextpilot.Block{{ID: "wraps to 0", Tokens: 1 << 32}, {ID: "wraps below 0", Tokens: 1<<31 + 1}, {ID: "small", Tokens: 10}}
	got := p.Plan(contextpilot.Request{Blocks: huge, Budget: 100})
	equal(t, "within budget", 1, len(got.Items))
	for range 2 {
		got = p.Plan(contextpilot.Request{ID: "r", Session: "s", Blocks: huge})
		if got.Prefix.Tokens < 0 || p.Stats().IndexTokens < 0 {
			t.Errorf("%+v, %+v", got.Prefix, p.Stats())
		}
	}
	at := p.Plan(contextpilot.Request{ID: "r", Session: "s", Blocks: blocks("a", "b")}).End
	p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: "r", Output: 1 << 40, Tokens: -1})
	for range 1 << 12 {
		at = at.Answered(1 << 40)
	}
	if got = p.Plan(contextpilot.Request{Blocks: blocks("c"), Prior: []string{"x"}, Behind: at.Answered(-1)}); got.Prefix.Tokens < 0 {
		t.Errorf("%+v", got.Prefix)
	}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	for range 2 {
		got = p.Plan(contextpilot.Request{Blocks: blocks("a", "b")})
	}
	equal(t, "the index works on", 2, got.Prefix.Blocks)
	if err := p.Check(); err != nil {
		t.Error(err)
	}
}
