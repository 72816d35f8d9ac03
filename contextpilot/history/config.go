package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// Defaults of [Config].
const (
	// DefaultPerMessage is what the chat templates of the Qwen, Llama 3 and ChatML families put around a message, at
	// most; and what follows the last message to open the answer.
	DefaultPerMessage = 6
	// DefaultMargin is by how much [contextpilot.Estimate] may be low, as a share of it.
	DefaultMargin = 0.25
)

// ErrTooLong is wrapped by errors that say that a turn cannot be sent: what cannot be left out exceeds the window.
var ErrTooLong = errors.New("does not fit the window")

// ErrBadConfig is wrapped by errors of [New] and [NewTrimmer].
var ErrBadConfig = errors.New("invalid configuration")

// Config configures a [Chat] or a [Trimmer]. Window must be set; the zero value of everything else is the recommended
// setup.
type Config struct {
	// Scope and Session are those of the requests that are planned; Session is a name for records only.
	Scope   contextpilot.Scope
	Session string
	// System is the system prompt; empty: none.
	System string
	// Window is the number of tokens that the engine takes for a prompt and its answer together.
	Window int
	// Answer is what is kept free of it for the answer; bound the answers by the same number. 0: an eighth of Window.
	Answer int
	// Blocks bounds the tokens of one turn's blocks, see [contextpilot.Request].Budget. 0: no limit but the window.
	Blocks int
	// Pinned is the number of first turns that are never cut. They take room from the rest for good: pin what the
	// conversation is about, not more.
	Pinned int
	// High is the number of prompt tokens that no prompt exceeds: a turn that would is preceded by a cut. 0: Window −
	// Answer.
	High int
	// Low is the number of prompt tokens that a cut leaves at most, without the new turn. 0: half of High.
	Low int
	// Summarize, if not nil, replaces what is cut by a short text.
	Summarize func(ctx context.Context, cut Cut) (string, error)
	// SummaryTokens bounds that text; a longer one loses its end. 0: a sixteenth of Window.
	SummaryTokens int
	// PerMessage is the number of tokens that the engine's chat template puts around each message, the opening of the
	// answer included. 0: DefaultPerMessage; negative: none.
	PerMessage int
	// Margin is by how much the pilot's tokenizer may be low, as a share of what it counts: 0.25 if 100 counted tokens
	// may be 125. 0: DefaultMargin if the tokenizer is [contextpilot.Estimate], otherwise it is taken to be exact;
	// negative: exact in any case.
	Margin float64
}

// withDefaults checks and completes the configuration; High and Low become what may be counted by tokenizer.
func (c Config) withDefaults(tokenizer contextpilot.Tokenizer) (Config, error) {
	for _, f := range []struct {
		name  string
		value int
	}{
		{"Answer", c.Answer},
		{"Blocks", c.Blocks},
		{"Pinned", c.Pinned},
		{"High", c.High},
		{"Low", c.Low},
		{"SummaryTokens", c.SummaryTokens},
	} {
		if f.value < 0 {
			return c, fmt.Errorf("%w: %s %d is negative", ErrBadConfig, f.name, f.value)
		}
	}
	if c.Window <= 0 {
		return c, fmt.Errorf("%w: Window %d: must be the number of tokens that the engine takes", ErrBadConfig, c.Window)
	}
	c.Answer = cmp.Or(c.Answer, c.Window/8)
	c.SummaryTokens = cmp.Or(c.SummaryTokens, c.Window/16)
	c.PerMessage = max(cmp.Or(c.PerMessage, DefaultPerMessage), 0)
	if _, estimate := tokenizer.(contextpilot.Estimate); estimate && c.Margin == 0 {
		c.Margin = DefaultMargin
	}
	c.Margin = max(c.Margin, 0)
	prompt := c.Window - c.Answer
	if prompt <= 0 {
		return c, fmt.Errorf("%w: Answer %d leaves nothing of Window %d", ErrBadConfig, c.Answer, c.Window)
	}
	if c.High = cmp.Or(c.High, prompt); c.High > prompt {
		return c, fmt.Errorf("%w: High %d exceeds Window %d − Answer %d", ErrBadConfig, c.High, c.Window, c.Answer)
	}
	if c.Low = cmp.Or(c.Low, c.High/2); c.Low > c.High {
		return c, fmt.Errorf("%w: Low %d exceeds High %d", ErrBadConfig, c.Low, c.High)
	}
	c.High, c.Low = int(float64(c.High)/(1+c.Margin)), int(float64(c.Low)/(1+c.Margin))
	return c, nil
}
