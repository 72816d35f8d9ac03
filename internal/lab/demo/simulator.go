package demo

import (
	"fmt"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

var _ contextpilot.Tokenizer = SimTokenizer{}

// SimTokenizer counts as the simulator does.
type SimTokenizer struct{}

// Count returns the number of tokens of text.
func (SimTokenizer) Count(text string) int { return tokens.Count(text) }

// NewSimulator returns the simulator with a cache of so many tokens, 0: unlimited. Its answers depend on the
// request's ID alone, so that both sides of a run get the same history.
func NewSimulator(capacity int) *sim.Engine {
	return sim.New(sim.Options{CapacityTokens: capacity, Reply: func(q engines.Request) string {
		return fmt.Sprintf("This stands for the answer to request %s. A simulator has read the prompt and has nothing to say about it.", q.ID)
	}})
}
