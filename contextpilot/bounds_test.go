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

func TestMaxSessions(t *testing.T) {
	p := newPilot(t, contextpilot.Config{MaxSessions: 3})
	turn := func(s string) int {
		return p.Plan(contextpilot.Request{Session: s, Blocks: blocks("a")}).Turn
	}
	for i := range 100 {
		turn(fmt.Sprint("s", i))
		if n := p.Stats().Sessions; n > 3 {
			t.Fatalf("%d sessions", n)
		}
	}
	equal(t, "sessions dropped", 97, p.Stats().SessionsDropped)
	equal(t, "turn of the oldest that is left", 2, turn("s97"))
	turn("new")
	equal(t, "it was used: the next oldest went", 3, turn("s97"))
	equal(t, "turn of what went", 1, turn("s98"))
	equal(t, "ended", true, p.EndSession(contextpilot.Scope{}, "s97"))
	equal(t, "ended twice", false, p.EndSession(contextpilot.Scope{}, "s97"))
	equal(t, "ended sessions are not dropped ones", 99, p.Stats().SessionsDropped)
}

func TestSessionTTL(t *testing.T) {
	c := &clock{now: time.Unix(1_700_000_000, 0)}
	p := newPilot(t, contextpilot.Config{SessionTTL: time.Hour, Now: c.Now})
	turn := func(s string) int { return p.Plan(contextpilot.Request{Session: s}).Turn }
	turn("a")
	c.now = c.now.Add(40 * time.Minute)
	turn("b")
	c.now = c.now.Add(20 * time.Minute)
	equal(t, "an hour old", 2, turn("a"))
	c.now = c.now.Add(time.Hour + time.Second)
	equal(t, "idle for longer", 1, turn("a"))
	equal(t, "sessions", 1, p.Stats().Sessions)
	equal(t, "dropped", 2, p.Stats().SessionsDropped)
}

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

// Scopes share nothing; sessions are a tenant's.
func TestScopes(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	plan := func(id string, s contextpilot.Scope, prior ...string) contextpilot.Plan {
		return p.Plan(contextpilot.Request{ID: id, Session: "s", Scope: s, Blocks: blocks("a", "b"), Prior: prior})
	}
	one := plan("1", contextpilot.Scope{Tenant: "x"})
	shown := one.Prompt("q")
	other := plan("2", contextpilot.Scope{Tenant: "y"}, shown)
	equal(t, "another tenant's session of that name", "a b; ", sent(other)+"; "+refs(other))
	moved := plan("4", contextpilot.Scope{Tenant: "x", Replica: "2"}, shown)
	equal(t, "the session on another replica", "; a b", sent(moved)+"; "+refs(moved))
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

func TestHoldAndClaim(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Policy: "sorted"})
	plan := func(id, session string, ids ...string) contextpilot.Plan {
		got := p.Plan(contextpilot.Request{ID: id, Session: session, Blocks: blocks(ids...)})
		p.Hold(got)
		return got
	}
	one := plan("1", "s", "b", "a")
	plan("2", "s", "c")
	text := "system\n" + one.Prompt("q")
	_, _, _, ok := p.Claim("t", text)
	equal(t, "another session", false, ok)
	got, start, end, ok := p.Claim("s", text)
	equal(t, "claimed", "1 true", fmt.Sprint(got.RequestID, " ", ok))
	equal(t, "where the blocks stand", one.Context(), text[start:end]+"\n")
	_, _, _, ok = p.Claim("s", text)
	equal(t, "claimed twice", false, ok)
	for _, wrong := range []string{"", "no block", "<doc c>\nanother text\n</doc>", "<doc x>\ntext of c\n</doc>"} {
		_, _, _, ok = p.Claim("s", wrong)
		equal(t, wrong, false, ok)
	}
	equal(t, "held", 1, p.Stats().Held)
	for i := range 1000 {
		plan(fmt.Sprint("many", i), "", "z", fmt.Sprint(i))
	}
	st := p.Stats()
	if st.Held > 256 || st.Held+st.HeldDropped != 1001 {
		t.Errorf("%d held, %d dropped", st.Held, st.HeldDropped)
	}
	last := p.Plan(contextpilot.Request{Blocks: blocks("z", "999")})
	got, _, _, ok = p.Claim("", last.Context())
	equal(t, "the newest is there", "many999 true", fmt.Sprint(got.RequestID, " ", ok))
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
	p.Plan(contextpilot.Request{ID: "r", Session: "s", Blocks: blocks("a", "b")})
	p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: "r", Output: 1 << 40, Tokens: -1})
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
