package server

import (
	"encoding/json"
	"math"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/openaiserver"
)

// Bounds of a request.
const (
	maxPrompts = 64
	maxStops   = 64
)

// messages reads a chat.
func (m members) messages() ([]engines.Message, error) {
	var list []struct {
		Role      string          `json:"role"`
		Content   json.RawMessage `json:"content"`
		ToolCalls json.RawMessage `json:"tool_calls"`
		Function  json.RawMessage `json:"function_call"` // of older clients
	}
	if err := m.get("messages", &list, "a list of objects with role and content"); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, openaiserver.Wrong("messages", "messages: want at least one")
	}
	chat := make([]engines.Message, len(list))
	for i, x := range list {
		if x.Role == "" {
			return nil, openaiserver.Wrong("messages", "messages[%d].role: want a role", i)
		}
		var calls []json.RawMessage
		const refusal = "messages[%d].%s %s: not supported by this server"
		if openaiserver.Given(x.ToolCalls) && (json.Unmarshal(x.ToolCalls, &calls) != nil || len(calls) > 0) {
			return nil, openaiserver.Wrong("messages", refusal, i, "tool_calls", openaiserver.Excerpt(x.ToolCalls))
		}
		if openaiserver.Given(x.Function) {
			return nil, openaiserver.Wrong("messages", refusal, i, "function_call", openaiserver.Excerpt(x.Function))
		}
		text, err := openaiserver.Content(x.Content, i)
		if err != nil {
			return nil, err
		}
		role := engines.Role(x.Role)
		if role == "developer" { // what OpenAI calls it for some models
			role = engines.System
		}
		chat[i] = engines.Message{Role: role, Content: text}
	}
	return chat, nil
}

// prompts reads the member prompt: a text, tokens, or a list of either.
func (m members) prompts(tokenize func(text string) ([]int32, error)) ([][]int32, error) {
	const want = "a text, a list of tokens, or a list of either"
	raw := m["prompt"]
	if !openaiserver.Given(raw) {
		return nil, openaiserver.Wrong("prompt", "prompt: want %s", want)
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		tokens, err := tokenize(text)
		return [][]int32{tokens}, err
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return nil, openaiserver.Wrong("prompt", "prompt %s: want %s", openaiserver.Excerpt(raw), want)
	}
	if isNumber(list[0]) {
		tokens, err := tokenList("prompt", raw)
		return [][]int32{tokens}, err
	}
	if len(list) > maxPrompts {
		return nil, openaiserver.Wrong("prompt", "prompt: %d prompts, want at most %d", len(list), maxPrompts)
	}
	all := make([][]int32, len(list))
	for i, one := range list {
		var err error
		if json.Unmarshal(one, &text) == nil && openaiserver.Given(one) {
			if all[i], err = tokenize(text); err != nil {
				return nil, err
			}
			continue
		}
		if all[i], err = tokenList("prompt", one); err != nil {
			return nil, openaiserver.Wrong("prompt", "prompt[%d] %s: want a text, or a list of tokens", i, openaiserver.Excerpt(one))
		}
	}
	return all, nil
}

func isNumber(raw json.RawMessage) bool { return raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' }

// tokenList reads tokens. Whether the model has them, the engine says.
func tokenList(name string, raw json.RawMessage) ([]int32, error) {
	var numbers []int64
	if !openaiserver.Given(raw) || json.Unmarshal(raw, &numbers) != nil {
		return nil, openaiserver.Wrong(name, "%s %s: want a list of tokens", name, openaiserver.Excerpt(raw))
	}
	tokens := make([]int32, len(numbers))
	for i, n := range numbers {
		if n < 0 || n > math.MaxInt32 {
			return nil, openaiserver.Wrong(name, "%s[%d] %d: want a token", name, i, n)
		}
		tokens[i] = int32(n)
	}
	return tokens, nil
}
