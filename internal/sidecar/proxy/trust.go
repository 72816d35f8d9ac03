package proxy

import "sync"

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
}

// answered takes one answer in, and reports whether it was the last one and too little was there: the index is not true then. An
// engine that lost its cache lost that of all scopes, and not only of those that happened to be asked for.
func (t *trust) answered(expected, actual int) (lost bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left == 0 || expected < trustTokens || actual < 0 {
		return false
	}
	t.left--
	t.expected += expected
	t.actual += actual
	return t.left == 0 && float64(t.actual) < trustShare*float64(t.expected)
}
