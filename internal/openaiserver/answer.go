package openaiserver

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/ragpilot/ragpilot/engines"
)

// Kind is one of the two endpoints for completions.
type Kind struct {
	Chat          bool
	Prefix        string // of an answer's ID
	object, chunk string
}

// The kinds.
var (
	Chat = Kind{Chat: true, Prefix: "chatcmpl-", object: "chat.completion", chunk: "chat.completion.chunk"}
	Text = Kind{Prefix: "cmpl-", object: "text_completion", chunk: "text_completion"}
)

// answer renders an answer, whole or in chunks.
type answer struct {
	*Completion
	stopReasons bool
	head        []byte // what an answer, or each chunk, begins with
}

// part is what follows the head.
type part struct {
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
	// Prompt is the prompt's tokens, of a chat; of a completion each choice has its own.
	Prompt []int32 `json:"prompt_token_ids,omitempty"`
}

type choice struct {
	Index      int             `json:"index"`
	Message    *message        `json:"message,omitempty"`
	Delta      *message        `json:"delta,omitempty"`
	Text       *string         `json:"text,omitempty"`
	Logprobs   *string         `json:"logprobs"` // always null
	Finish     *string         `json:"finish_reason"`
	StopReason json.RawMessage `json:"stop_reason,omitempty"` // null
	Prompt     []int32         `json:"prompt_token_ids,omitempty"`
	// Context is of an answer from a compressed context, with the end of a streamed one.
	Context *engines.ContextFit `json:"context_fit,omitempty"`
}

type message struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

type usage struct {
	Prompt  int `json:"prompt_tokens"`
	Total   int `json:"total_tokens"`
	Output  int `json:"completion_tokens"`
	Details struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// usageOf adds up the usage of several prompts.
func usageOf(responses []engines.Response) *usage {
	u := &usage{}
	for _, r := range responses {
		u.Prompt += r.Usage.PromptTokens
		u.Output += r.Usage.OutputTokens
		u.Details.Cached += r.Usage.CachedTokens
	}
	u.Total = u.Prompt + u.Output
	return u
}

// answer begins the answer to a completion.
func (f *Front) answer(c *Completion) *answer {
	object := c.Kind.object
	if c.Stream {
		object = c.Kind.chunk
	}
	head := encode(struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"` // seconds since 1970
		Model   string `json:"model"`
	}{c.Kind.Prefix + c.ID, object, f.Now().Unix(), c.Model})
	return &answer{c, f.StopReasons, slices.Clip(head[:len(head)-1])}
}

// render puts a part behind the head. shown: with the prompt's tokens, if they were asked for.
func (a *answer) render(p part, shown bool) []byte {
	for i := range p.Choices {
		if c := &p.Choices[i]; a.stopReasons || c.Finish != nil && a.Stream {
			c.StopReason = json.RawMessage("null")
		}
		if shown && a.Tokens != nil && !a.Kind.Chat {
			p.Choices[i].Prompt = a.Tokens[p.Choices[i].Index]
		}
	}
	if shown && a.Tokens != nil && a.Kind.Chat {
		p.Prompt = a.Tokens[0]
	}
	out := append(a.head, encode(p)...)
	out[len(a.head)] = ',' // in place of what opens the part
	return out
}

// whole renders an answer that is not streamed.
func (a *answer) whole(responses []engines.Response) []byte {
	p := part{Choices: []choice{}, Usage: usageOf(responses)}
	for i, r := range responses {
		c := choice{Index: i, Finish: &r.Finish, Context: r.Context}
		if a.Kind.Chat {
			c.Message = &message{"assistant", &r.Text}
		} else {
			c.Text = &r.Text
		}
		p.Choices = append(p.Choices, c)
	}
	return a.render(p, true)
}

// opening is the first chunk of a chat, which has the role, or of a completion whose tokens were asked for; nil: there is none.
func (a *answer) opening(i int) []byte {
	if !a.Kind.Chat && a.Tokens == nil {
		return nil
	}
	return a.chunk(choice{Index: i}, "", "assistant", true)
}

// piece is a chunk with text.
func (a *answer) piece(i int, text string) []byte { return a.chunk(choice{Index: i}, text, "", false) }

// end is the last chunk of a choice, which has the reason.
func (a *answer) end(i int, r engines.Response) []byte {
	return a.chunk(choice{Index: i, Finish: &r.Finish, Context: r.Context}, "", "", false)
}

func (a *answer) chunk(c choice, text, role string, shown bool) []byte {
	switch {
	case !a.Kind.Chat:
		c.Text = &text
	case c.Finish != nil:
		c.Delta = &message{}
	default:
		c.Delta = &message{role, &text}
	}
	return event(a.render(part{Choices: []choice{c}}, shown))
}

// last ends a stream, with the usage if that was asked for.
func (a *answer) last(responses []engines.Response) []byte {
	var out []byte
	if a.Usage {
		out = event(a.render(part{Choices: []choice{}, Usage: usageOf(responses)}, false))
	}
	return append(out, "data: [DONE]\n\n"...)
}

// event is a server-sent event.
func event(data []byte) []byte { return slices.Concat([]byte("data: "), data, []byte("\n\n")) }

// encode renders what cannot fail to render, with HTML characters as they are.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // every value here can be JSON
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
