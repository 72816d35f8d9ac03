package upstream

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/openaiserver"
)

// question is a decoded request.
type question struct {
	id        string
	messages  []engines.Message
	stream    bool
	usage     bool  // in a last chunk of its own
	maxTokens int   // 0: no limit
	seed      int64 // 0 if not given
}

// wireRequest is what both endpoints read of a body.
type wireRequest struct {
	Messages      []wireMessage   `json:"messages"`
	Prompt        json.RawMessage `json:"prompt"`
	Tools         json.RawMessage `json:"tools"`
	Stream        bool            `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	Seed                int64           `json:"seed"`
	RequestID           json.RawMessage `json:"request_id"`
	Rid                 json.RawMessage `json:"rid"` // SGLang also takes lists
}

type wireMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls json.RawMessage `json:"tool_calls"`
}

// decode reads a request of either kind.
func decode(body []byte, header http.Header, k *openaiserver.Kind) (*question, error) {
	var w wireRequest
	if err := json.Unmarshal(body, &w); err != nil {
		return nil, openaiserver.Wrong("", "the body is not a valid request: %v", err)
	}
	q := &question{
		id:     cmp.Or(header.Get("X-Request-Id"), asString(w.RequestID), asString(w.Rid)),
		stream: w.Stream, usage: w.StreamOptions.IncludeUsage, seed: w.Seed,
	}
	if q.id == "" {
		q.id = rand.Text()
	}
	for _, limit := range []*int{w.MaxCompletionTokens, w.MaxTokens} {
		if limit == nil || q.maxTokens > 0 {
			continue
		}
		if *limit < 1 {
			return nil, openaiserver.Wrong("", "max_tokens %d: want at least 1", *limit)
		}
		q.maxTokens = *limit
	}
	var err error
	if k.Chat {
		q.messages, err = chatPrompt(&w)
	} else {
		q.messages, err = textPrompt(w.Prompt)
	}
	return q, err
}

// chatPrompt returns what an engine's template would put into the prompt.
func chatPrompt(w *wireRequest) ([]engines.Message, error) {
	if len(w.Messages) == 0 {
		return nil, openaiserver.Wrong("", "messages: want at least one")
	}
	out := make([]engines.Message, 0, len(w.Messages)+1)
	if openaiserver.Given(w.Tools) {
		out = append(out, engines.Message{Role: engines.System, Content: string(w.Tools)})
	}
	for i, m := range w.Messages {
		if m.Role == "" {
			return nil, openaiserver.Wrong("", "messages[%d]: role is missing", i)
		}
		text, err := openaiserver.Content(m.Content, i)
		if err != nil {
			return nil, err
		}
		if openaiserver.Given(m.ToolCalls) {
			text += string(m.ToolCalls)
		}
		out = append(out, engines.Message{Role: engines.Role(m.Role), Content: text})
	}
	return out, nil
}

// textPrompt reads the prompt of /v1/completions: a string, a list of one string, or a list of token IDs.
func textPrompt(raw json.RawMessage) ([]engines.Message, error) {
	var text string
	var texts []string
	var ids []int64
	switch {
	case !openaiserver.Given(raw):
		return nil, openaiserver.Wrong("", "prompt is missing")
	case json.Unmarshal(raw, &text) == nil:
	case json.Unmarshal(raw, &texts) == nil && len(texts) == 1:
		text = texts[0]
	case json.Unmarshal(raw, &ids) == nil && len(ids) > 0:
		text = strings.Trim(fmt.Sprint(ids), "[]")
	default:
		return nil, openaiserver.Wrong("", "prompt: want a string, a list of one string, or a list of token IDs")
	}
	return []engines.Message{{Role: engines.User, Content: text}}, nil
}

// asString returns a string, and "" for anything else.
func asString(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}
