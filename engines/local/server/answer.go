package server

import (
	"fmt"

	"github.com/ragpilot/ragpilot/engines"
)

// kind is one of the two endpoints.
type kind struct {
	chat          bool
	prefix        string // of an answer's ID
	object, chunk string
}

var (
	chatKind = kind{chat: true, prefix: "chatcmpl-", object: "chat.completion", chunk: "chat.completion.chunk"}
	textKind = kind{prefix: "cmpl-", object: "text_completion", chunk: "text_completion"}
)

// number is the ID of one of several prompts.
func (*kind) number(id string, i int) string { return fmt.Sprintf("%s-%d", id, i) }

// answer is an answer, or a chunk of one.
type answer struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"` // seconds since 1970
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
	// Prompt is the prompt's tokens, of a chat; of a completion each choice has its own.
	Prompt []int32 `json:"prompt_token_ids,omitempty"`
}

type choice struct {
	Index      int      `json:"index"`
	Message    *message `json:"message,omitempty"`
	Delta      *message `json:"delta,omitempty"`
	Text       *string  `json:"text,omitempty"`
	Logprobs   *string  `json:"logprobs"` // always null
	Finish     *string  `json:"finish_reason"`
	StopReason *string  `json:"stop_reason"` // always null
	Prompt     []int32  `json:"prompt_token_ids,omitempty"`
	// Context is of an answer from a compressed context, with the end of a streamed one.
	Context *engines.ContextFit `json:"context_fit,omitempty"`
}

type message struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

type usage struct {
	Prompt  int     `json:"prompt_tokens"`
	Total   int     `json:"total_tokens"`
	Output  int     `json:"completion_tokens"`
	Details details `json:"prompt_tokens_details"`
}

type details struct {
	Cached int `json:"cached_tokens"`
}

// counted adds up the usage of several prompts.
func counted(responses []engines.Response) *usage {
	u := &usage{}
	for _, r := range responses {
		u.Prompt += r.Usage.PromptTokens
		u.Output += r.Usage.OutputTokens
		u.Details.Cached += r.Usage.CachedTokens
	}
	u.Total = u.Prompt + u.Output
	return u
}

// answer returns one without choices.
func (q *question) answer(object string, created int64) answer {
	return answer{ID: q.kind.prefix + q.id, Object: object, Created: created, Model: q.model, Choices: []choice{}}
}

// whole is an answer that is not streamed.
func (q *question) whole(created int64, responses []engines.Response) answer {
	a := q.answer(q.kind.object, created)
	a.Usage = counted(responses)
	for i, r := range responses {
		c := choice{Index: i, Finish: &r.Finish, Context: r.Context}
		if q.kind.chat {
			c.Message = &message{"assistant", &r.Text}
		} else {
			c.Text = &r.Text
		}
		q.showPrompt(&a, &c)
		a.Choices = append(a.Choices, c)
	}
	return a
}

// showPrompt enters the prompt's tokens where vLLM has them, if they were asked for.
func (q *question) showPrompt(a *answer, c *choice) {
	switch {
	case !q.tokenIDs:
	case q.kind.chat:
		a.Prompt = q.prompts[0]
	default:
		c.Prompt = q.prompts[c.Index]
	}
}

// opening is the first chunk of a chat, which has the role, or of a completion whose tokens were asked for. ok is false
// if there is none.
func (q *question) opening(created int64, i int) (a answer, ok bool) {
	a = q.answer(q.kind.chunk, created)
	c := choice{Index: i}
	empty := ""
	if q.kind.chat {
		c.Delta = &message{"assistant", &empty}
	} else {
		c.Text = &empty
	}
	q.showPrompt(&a, &c)
	a.Choices = append(a.Choices, c)
	return a, q.kind.chat || q.tokenIDs
}

// piece is a chunk with text, or the one at a choice's end, which has the reason.
func (q *question) piece(created int64, i int, text string, finish *string, fit *engines.ContextFit) answer {
	a := q.answer(q.kind.chunk, created)
	c := choice{Index: i, Finish: finish, Context: fit}
	switch {
	case !q.kind.chat:
		c.Text = &text
	case finish != nil:
		c.Delta = &message{}
	default:
		c.Delta = &message{Content: &text}
	}
	a.Choices = append(a.Choices, c)
	return a
}
