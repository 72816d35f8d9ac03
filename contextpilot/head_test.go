package contextpilot_test

import (
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// What stands in front of every prompt is resident as long as a prompt is that stands behind it.
func TestHeadGoes(t *testing.T) {
	const head = 48
	plan := func(p *contextpilot.Pilot, id string, ids ...string) int {
		return p.Plan(contextpilot.Request{ID: id, HeadTokens: head, Blocks: blocks(ids...)}).Prefix.Tokens
	}
	for name, c := range map[string]struct {
		events []contextpilot.Event // about the only request
		want   int                  // expected of the next one, which shares no block
	}{
		"never sent":      {[]contextpilot.Event{{Kind: contextpilot.Gone, Request: "1"}}, 0},
		"evicted":         {[]contextpilot.Event{{Kind: contextpilot.Served, Request: "1"}, {Kind: contextpilot.Gone, Request: "1"}}, 0},
		"nothing is left": {[]contextpilot.Event{{Kind: contextpilot.Served, Request: "1"}, {Kind: contextpilot.Shrunk, Request: "1"}}, 0},
		"a part is left": {[]contextpilot.Event{{Kind: contextpilot.Served, Request: "1"}, {
			Kind: contextpilot.Shrunk, Request: "1",
			Tokens: head + 32,
		}}, head},
		"in flight":           {nil, head},
		"another one is gone": {[]contextpilot.Event{{Kind: contextpilot.Gone, Request: "2"}}, head},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPilot(t, contextpilot.Config{})
			if got := plan(p, "1", "a", "b"); got != 0 {
				t.Fatalf("%d tokens are expected of an engine that was sent nothing", got)
			}
			p.Observe(c.events...)
			if got := plan(p, "next", "y", "z"); got != c.want {
				t.Errorf("%d tokens expected, want %d", got, c.want)
			}
			if err := p.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A retry under the ID of a request that never reached the engine finds nothing of it there.
func TestHeadOfRetry(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	for range 2 {
		if got := p.Plan(contextpilot.Request{ID: "1", HeadTokens: 48, Blocks: blocks("a", "b")}).Prefix.Tokens; got != 0 {
			t.Errorf("%d tokens are expected, want 0", got)
		}
	}
}
