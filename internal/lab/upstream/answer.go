package upstream

import (
	"bytes"
	"encoding/json"

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

// done ends a stream.
var done = []byte("data: [DONE]\n\n")

// answer renders one answer.
type answer struct {
	*kind
	id, model string
	created   int64 // seconds since 1970

	head []byte // of its chunks, made when first needed
}

type usageJSON struct {
	Prompt  int `json:"prompt_tokens"`
	Total   int `json:"total_tokens"`
	Output  int `json:"completion_tokens"`
	Details struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func usageOf(u engines.Usage) usageJSON {
	out := usageJSON{Prompt: u.PromptTokens, Total: u.PromptTokens + u.OutputTokens, Output: u.OutputTokens}
	out.Details.Cached = u.CachedTokens
	return out
}

// whole renders an answer that is not streamed.
func (a *answer) whole(text, finish string, used engines.Usage) []byte {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	type choice struct {
		Index    int      `json:"index"`
		Message  *message `json:"message,omitempty"`
		Text     *string  `json:"text,omitempty"`
		Logprobs *string  `json:"logprobs"` // always null
		Finish   string   `json:"finish_reason"`
	}
	c := choice{Finish: finish}
	if a.chat {
		c.Message = &message{"assistant", text}
	} else {
		c.Text = &text
	}
	return encode(struct {
		ID      string    `json:"id"`
		Object  string    `json:"object"`
		Created int64     `json:"created"`
		Model   string    `json:"model"`
		Choices []choice  `json:"choices"`
		Usage   usageJSON `json:"usage"`
	}{a.id, a.object, a.created, a.model, []choice{c}, usageOf(used)})
}

// opening is the first chunk of a chat, which has only the role; nothing for a completion.
func (a *answer) opening() []byte {
	if !a.chat {
		return nil
	}
	return a.event(`[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`, nil)
}

// piece is a chunk with text.
func (a *answer) piece(text string) []byte {
	if a.chat {
		return a.event(`[{"index":0,"delta":{"content":`+string(encode(text))+`},"logprobs":null,"finish_reason":null}]`, nil)
	}
	return a.event(`[{"index":0,"text":`+string(encode(text))+`,"logprobs":null,"finish_reason":null}]`, nil)
}

// end is the chunk with the finish reason.
func (a *answer) end(finish string) []byte {
	if a.chat {
		return a.event(`[{"index":0,"delta":{},"logprobs":null,"finish_reason":"`+finish+`","stop_reason":null}]`, nil)
	}
	return a.event(`[{"index":0,"text":"","logprobs":null,"finish_reason":"`+finish+`","stop_reason":null}]`, nil)
}

// usage is the chunk with the counts.
func (a *answer) usage(used engines.Usage) []byte { return a.event("[]", encode(usageOf(used))) }

func (a *answer) event(choices string, usage []byte) []byte {
	if a.head == nil {
		object := encode(struct {
			ID      string `json:"id"`
			Object  string `json:"object"`
			Created int64  `json:"created"`
			Model   string `json:"model"`
		}{a.id, a.chunk, a.created, a.model})
		a.head = append(append([]byte("data: "), object[:len(object)-1]...), `,"choices":`...)
	}
	out := make([]byte, 0, len(a.head)+len(choices)+len(usage)+16)
	out = append(append(out, a.head...), choices...)
	if usage != nil {
		out = append(append(out, `,"usage":`...), usage...)
	}
	return append(out, "}\n\n"...)
}

// encode renders what cannot fail to render, with HTML characters as they are.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
