package conversation

import "github.com/ragpilot/ragpilot/contextpilot"

// Outcome is what became of a request. Numbers of tokens are negative if they are not known.
type Outcome struct {
	Gone   bool // it never reached the engine
	Prompt int  // tokens of the whole prompt
	Cached int  // of them from the engine's cache
	Output int
}

// Done gives the pilot's index the outcome of a request. It is called once, when the answer has ended.
func (t *Forward) Done(o Outcome) {
	for _, p := range t.Plans {
		if o.Gone {
			t.engine.gone(p.Scope, p.ID)
			continue
		}
		t.engine.pilot.Observe(contextpilot.Event{
			Kind: contextpilot.Served, Scope: p.Scope, Request: p.ID, Tokens: max(o.Cached, 0), Output: max(o.Output, 0),
			CachedKnown: o.Cached >= 0 && !t.dryRun, Prompt: max(o.Prompt, 0),
		})
	}
}
