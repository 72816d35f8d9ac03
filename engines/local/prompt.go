package local

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local/internal/runner"
)

// prompt is a request that was checked.
type prompt struct {
	request runner.Request
	options options
	context *attached // nil: none
}

// length is how many tokens the prompt has, with the slots of its context.
func (p prompt) length() int { return p.context.slots() + len(p.request.Prompt) }

// options are the members of a request's body that are understood.
type options struct {
	Temperature, TopP              *float64
	Seed                           *int64
	Stop                           stops
	MaxTokens, MaxCompletionTokens *int
	RepetitionPenalty              *float64
	NoRepeatNGramSize              *int
	Reuse, Selector                string
	Recompute                      *float64
	IgnoreEOS                      bool
	CacheSalt, Context             string
}

func readOptions(extra map[string]json.RawMessage) (options, error) {
	var o options
	for _, f := range []struct {
		name string
		to   any
	}{
		{"temperature", &o.Temperature},
		{"top_p", &o.TopP},
		{"seed", &o.Seed},
		{"stop", &o.Stop},
		{"max_tokens", &o.MaxTokens},
		{"max_completion_tokens", &o.MaxCompletionTokens},
		{"ignore_eos", &o.IgnoreEOS},
		{"cache_salt", &o.CacheSalt},
		{"context", &o.Context},
		{"repetition_penalty", &o.RepetitionPenalty},
		{"no_repeat_ngram_size", &o.NoRepeatNGramSize},
		{"reuse", &o.Reuse},
		{"recompute", &o.Recompute},
		{"selector", &o.Selector},
	} {
		if value := extra[f.name]; len(value) > 0 { // an empty one stands for no member
			if err := json.Unmarshal(value, f.to); err != nil {
				return o, refused("%s %s: %w", f.name, value, err)
			}
		}
	}
	if slices.Contains(o.Stop, "") {
		return o, refused("stop %q: an empty text", o.Stop)
	}
	return o, nil
}

// stops is one text or several.
type stops []string

// UnmarshalJSON takes a text, a list of texts, or null. An empty text is none.
func (s *stops) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*s = nil
		if one != "" {
			*s = stops{one}
		}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(s))
}

// prepare checks a request, but for the length of its answer. blocks are in tokens.
func (e *Engine) prepare(req engines.Request, tokens []int32, blocks []engines.BlockSpan) (prompt, error) {
	if req.Model != "" && req.Model != e.config.Served {
		return prompt{}, refused("model %q: only %q is served", req.Model, e.config.Served)
	}
	if len(tokens) == 0 {
		return prompt{}, refused("prompt []: want at least one token")
	}
	for i, t := range tokens {
		if t < 0 || int(t) >= e.file.Vocab {
			return prompt{}, refused("prompt: token %d is %d, the vocabulary has %d", i, t, e.file.Vocab)
		}
	}
	o, err := readOptions(req.Extra)
	if err != nil {
		return prompt{}, err
	}
	temperature := cmp.Or(o.Temperature, req.Temperature)
	sample, err := sampler(temperature, o.TopP, o.Seed)
	if err != nil {
		return prompt{}, err
	}
	penalties, err := newPenalties(o.RepetitionPenalty, o.NoRepeatNGramSize, tokens)
	if err != nil {
		return prompt{}, err
	}
	p := prompt{options: o, request: runner.Request{Prompt: tokens, Salt: o.CacheSalt, Stop: e.file.Stop}}
	if penalties.tokens != nil || temperature != nil && *temperature != 0 {
		p.request.Sample = penalties.wrap(sample)
	}
	if p.context, err = e.context(o.Context); err != nil {
		return prompt{}, err
	}
	if p.context != nil {
		p.request.Prefix, p.request.Prompt = p.context.prefix, slices.Concat(p.context.rest, tokens)
	}
	if o.IgnoreEOS {
		p.request.Stop = nil
	}
	if p.context == nil {
		p.request.Reuse, err = e.reuse(tokens, o, blocks)
	}
	return p, err
}

// limit is how many tokens the answer may have.
func (e *Engine) limit(req engines.Request, p prompt) (int, error) {
	o, prompt, capacity := p.options, p.length(), e.room(p.context)
	asked, field := req.MaxTokens, "max_tokens"
	for _, more := range []struct {
		name  string
		value *int
	}{{"max_tokens", o.MaxTokens}, {"max_completion_tokens", o.MaxCompletionTokens}} {
		if more.value == nil {
			continue
		}
		if field, asked = more.name, *more.value; asked == 0 {
			return 0, refused("%s 0: want at least 1", field)
		}
	}
	room := capacity - prompt
	switch {
	case asked < 0:
		return 0, refused("%s %d: want at least 1", field, asked)
	case room < 1:
		return 0, refused("prompt of %d tokens: with an answer, %d have room", prompt, capacity)
	case asked > room:
		return 0, refused("%s %d with a prompt of %d tokens: together %d have room", field, asked, prompt, capacity)
	case asked == 0:
		return min(e.config.MaxTokens, room), nil
	}
	return asked, nil
}

// wrongError is an [engines.ErrRefused] that no engine would take.
type wrongError struct{ error }

func (e wrongError) Error() string   { return engines.ErrRefused.Error() + ": " + e.error.Error() }
func (e wrongError) Unwrap() []error { return []error{engines.ErrRefused, e.error} }
func (e wrongError) OfRequest() bool { return true }

func refused(format string, args ...any) error { return wrongError{fmt.Errorf(format, args...)} }

var _ contextpilot.Tokenizer = (*Engine)(nil)

// TokenizeChat returns the tokens of a chat, with the beginning of the answer, as Generate sends them to the model.
func (e *Engine) TokenizeChat(messages []engines.Message) []int32 { return e.file.Chat(messages, true) }

// Tokenize returns the tokens of a text as GenerateTokens takes them, with the token that begins every text if the model has one.
func (e *Engine) Tokenize(text string) []int32 { return e.file.Text(text) }

// TokenizeBare returns the tokens of a text as it stands: as Tokenize, without a token in front that the text does not name itself.
func (e *Engine) TokenizeBare(text string) []int32 { return e.file.Tokenizer.Encode(text, true) }

// Detokenize returns the text of tokens, with the names of special ones. Unknown ones are left out.
func (e *Engine) Detokenize(tokens []int32) string { return e.file.Tokenizer.Decode(tokens, true) }

// Count returns the number of tokens of a text. It makes the engine a [contextpilot.Tokenizer].
func (e *Engine) Count(text string) int { return e.file.Tokenizer.Count(text) }
