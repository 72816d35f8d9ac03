package contextpilot_test

import (
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// By default a request of few blocks leaves retrieval order only for a path that finds more.
func TestStaysInRetrievalOrder(t *testing.T) {
	for _, c := range []struct{ name, before, ask, want string }{
		{"a block more", "a b c d", "x a b", "a b x"},
		{"less more than the first block", "a b c d", "X a y", "X a y"},
		{"as much as the first block", "a b c d", "X a y b", "a b y X"},
		{"behind a resident block any", "a B c d", "B c a", "a B c"},
		{"nothing", "a b c d", "x y z", "x y z"},
		{"as retrieved", "a b c d", "a b x", "a b x"},
		{"eight blocks, less more than the first", "a b c d", "X a p q r s t u", "a p q r s t u X"},
	} {
		p := newPilot(t, contextpilot.Config{BlockSize: 1})
		p.Plan(contextpilot.Request{Blocks: sized(c.before)})
		ask := contextpilot.Request{ID: "ask", Blocks: sized(c.ask)}
		match := p.Match(ask)
		plan := p.Plan(ask)
		equal(t, c.name, c.want, sent(plan))
		equal(t, c.name+": Match", plan.Prefix.Tokens, match.Tokens)
		if stays := c.want == c.ask; plan.Why.Stays != stays || strings.Contains(plan.Explain(), "too little more") != stays {
			t.Errorf("%s: stays %v\n%s", c.name, plan.Why.Stays, plan.Explain())
		}
	}
}

// sized are blocks of 100 tokens; those in capitals have 200.
func sized(ids string) (blocks []contextpilot.Block) {
	for id := range strings.FieldsSeq(ids) {
		n := 100
		if id != strings.ToLower(id) {
			n = 200
		}
		blocks = append(blocks, prose(id, n))
	}
	return blocks
}

// Requests that repeat an order which an earlier request has left do not stay in it: it finds nothing there.
func TestLeftRetrievalOrder(t *testing.T) {
	p := newPilot(t, contextpilot.Config{BlockSize: 1})
	for _, ids := range []string{"p q r", "p q r", "a b", "X a b y"} {
		p.Plan(contextpilot.Request{Blocks: sized(ids)})
	}
	if plan := p.Plan(contextpilot.Request{Blocks: sized("X a z")}); plan.Why.Stays || plan.Prefix.Tokens < 100 {
		t.Errorf("%d tokens expected in the cache: %s", plan.Prefix.Tokens, plan.Explain())
	}
}

// An echo is left out where a request would compute more with it than if all were sent in retrieval order.
func TestNoEchoThatCostsMore(t *testing.T) {
	for before, echo := range map[string]bool{"x a b c": false, "x": true} {
		p := newPilot(t, contextpilot.Config{BlockSize: 1})
		p.Plan(contextpilot.Request{ID: "gone", Blocks: sized(before)})
		p.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: "gone"})
		p.Plan(contextpilot.Request{Blocks: sized("a x b c"), Fixed: true})
		plan := p.Plan(contextpilot.Request{Blocks: sized("x a b c")})
		equal(t, "sent", "a x b c", sent(plan))
		equal(t, "behind "+before+": echo", echo, plan.Echo != nil)
	}
}
