package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/contextpilot/profile"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// Config says what is run. Fields without a default are required.
type Config struct {
	Script Script
	// Search returns the K best blocks for a question, best first. It is asked once for each question.
	Search func(ctx context.Context, question string, k int) ([]contextpilot.Block, error)
	K      int
	// Profile is what the side with a pilot may change.
	Profile profile.Profile
	// LoadCost is that of the side with a pilot, see [contextpilot.Config].
	LoadCost map[string]float64
	// NewEngine returns the engine of one side; it is called twice. Two engines that share a cache need a Tag.
	NewEngine func() (engines.Engine, error)
	// Tokenizer counts tokens for the pilot.
	Tokenizer contextpilot.Tokenizer
	// Tag, if not empty, makes the prompts and request IDs of this run and of each of its sides differ from all
	// others, from the first token on: on an engine that is already running, the second side would otherwise find
	// what the first has left in the cache.
	Tag string
	// System is the message in front of every conversation; empty: the constant of that name.
	System string
	// OneSentence ends each answer at its first sentence, before it enters the history.
	OneSentence bool
	// MaxTokens bounds each answer; 0: the engine's default.
	MaxTokens int
	// Temperature is passed to the engine.
	Temperature *float64
	// Progress, if not nil, is called before each request.
	Progress func(side, request string)
}

// System is the message in front of every conversation, unless Config has another.
const System = "You are a careful assistant. Answer the question from the documents in the conversation. " +
	"Name the documents you used. Say so if the documents do not hold the answer. Keep the answer short."

// retrieved is a question with what was found for it.
type retrieved struct {
	Turn
	blocks []contextpilot.Block
}

// Run retrieves once for each question and runs the chat without and with a pilot, one request after the other.
// Any error ends it, and there is no result then: a part of a chat proves nothing.
func Run(ctx context.Context, c Config) (*Result, error) {
	questions, err := c.retrieve(ctx)
	if err != nil {
		return nil, err
	}
	c.System = cmp.Or(c.System, System)
	layout, err := c.Profile.Apply(contextpilot.Config{LoadCost: c.LoadCost})
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	layout.Policy = cmp.Or(layout.Policy, contextpilot.DefaultPolicy)
	r := &Result{K: c.K, Policy: layout.Policy, System: c.System}
	r.catalog(questions)
	for _, side := range []struct {
		name  string
		pilot contextpilot.Config
		out   *[]Sent
	}{
		// Without: the blocks as retrieved and in full, every turn. A pilot that may do nothing renders them, so that
		// both sides have the same markup.
		{"without", contextpilot.Config{Policy: "retrieval", Dedup: contextpilot.DedupOff}, &r.Without},
		{"with", layout, &r.With},
	} {
		side.pilot.Tokenizer = c.Tokenizer
		a, err := newArm(c, side.name, side.pilot)
		if err != nil {
			return nil, err
		}
		*side.out, err = a.run(ctx, questions)
		if err != nil {
			return nil, fmt.Errorf("%s ragpilot: %w", side.name, err)
		}
		r.Engine = a.engine.Name()
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	return r, nil
}

func (c Config) retrieve(ctx context.Context) ([]retrieved, error) {
	if len(c.Script) == 0 {
		return nil, errors.New("the script has no questions")
	}
	if c.K < 1 {
		return nil, fmt.Errorf("k = %d, want at least 1", c.K)
	}
	var out []retrieved
	for _, t := range c.Script {
		blocks, err := c.Search(ctx, t.Question, c.K)
		if err != nil {
			return nil, fmt.Errorf("retrieve for %s: %w", t.ID(), err)
		}
		out = append(out, retrieved{t, blocks})
	}
	return out, nil
}

// NotPages are the files of the documentation's folder that the demonstration does not read: tables of settings, and of figures,
// which change with every measurement and answer no question in words.
func NotPages() []string { return []string{"reference.md", "results.md"} }

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
