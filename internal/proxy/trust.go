package proxy

import (
	"sync"

	"github.com/ragpilot/ragpilot/contextpilot"
)

const (
	// trustAnswers is how many answers an index from before a restart is tried on.
	trustAnswers = 20
	// trustTokens is the least expectation that counts: less is there by chance.
	trustTokens = 64
	// trustShare is the share of the expected tokens that must have been there. Tokens are estimated here and counted
	// there, and other clients evict; an engine that was restarted, too, has none.
	trustShare = 0.25
)

// trust finds out whether an index from before a restart is still true of the engine.
type trust struct {
	mu               sync.Mutex
	left             int
	expected, actual int
	scopes           map[contextpilot.Scope]bool
}

// answered takes one answer in, and returns the scopes to clear when it was the last one and too little was there.
func (t *trust) answered(scope contextpilot.Scope, expected, actual int) []contextpilot.Scope {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left == 0 || expected < trustTokens || actual < 0 {
		return nil
	}
	if t.scopes == nil {
		t.scopes = map[contextpilot.Scope]bool{}
	}
	t.scopes[scope] = true
	t.left--
	t.expected += expected
	t.actual += actual
	if t.left > 0 || float64(t.actual) >= trustShare*float64(t.expected) {
		return nil
	}
	var out []contextpilot.Scope
	for s := range t.scopes {
		out = append(out, s)
	}
	return out
}
