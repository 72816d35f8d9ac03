package server

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/ragpilot/ragpilot/engines"
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
		return nil, wrong("messages", "messages: want at least one")
	}
	chat := make([]engines.Message, len(list))
	for i, x := range list {
		if x.Role == "" {
			return nil, wrong("messages", "messages[%d].role: want a role", i)
		}
		var calls []json.RawMessage
		if given(x.ToolCalls) && (json.Unmarshal(x.ToolCalls, &calls) != nil || len(calls) > 0) {
			return nil, wrong("messages", "messages[%d].tool_calls %s: not supported by this server", i, excerpt(x.ToolCalls))
		}
		if given(x.Function) {
			return nil, wrong("messages", "messages[%d].function_call %s: not supported by this server", i, excerpt(x.Function))
		}
		text, err := content(x.Content, i)
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

// content reads a message's content: nothing, a text, or a list of texts, which are joined by line breaks, as vLLM does.
func content(raw json.RawMessage, message int) (string, error) {
	if !given(raw) {
		return "", nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var parts []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return "", wrong("messages", "messages[%d].content %s: want a text, or a list of texts", message, excerpt(raw))
	}
	texts := make([]string, len(parts))
	for i, p := range parts {
		if p.Type != "text" || p.Text == nil {
			return "", wrong("messages", "messages[%d].content[%d].type %q: want text", message, i, shorten(p.Type, 80))
		}
		texts[i] = *p.Text
	}
	return strings.Join(texts, "\n"), nil
}

// prompts reads the member prompt: a text, tokens, or a list of either.
func (m members) prompts(tokenize func(text string) ([]int32, error)) ([][]int32, error) {
	const want = "a text, a list of tokens, or a list of either"
	raw := m["prompt"]
	if !given(raw) {
		return nil, wrong("prompt", "prompt: want %s", want)
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		tokens, err := tokenize(text)
		return [][]int32{tokens}, err
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return nil, wrong("prompt", "prompt %s: want %s", excerpt(raw), want)
	}
	if isNumber(list[0]) {
		tokens, err := tokenList("prompt", raw)
		return [][]int32{tokens}, err
	}
	if len(list) > maxPrompts {
		return nil, wrong("prompt", "prompt: %d prompts, want at most %d", len(list), maxPrompts)
	}
	all := make([][]int32, len(list))
	for i, one := range list {
		var err error
		if json.Unmarshal(one, &text) == nil && given(one) {
			if all[i], err = tokenize(text); err != nil {
				return nil, err
			}
			continue
		}
		if all[i], err = tokenList("prompt", one); err != nil {
			return nil, wrong("prompt", "prompt[%d] %s: want a text, or a list of tokens", i, excerpt(one))
		}
	}
	return all, nil
}

func isNumber(raw json.RawMessage) bool { return raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' }

// tokenList reads tokens. Whether the model has them, the engine says.
func tokenList(name string, raw json.RawMessage) ([]int32, error) {
	var numbers []int64
	if !given(raw) || json.Unmarshal(raw, &numbers) != nil {
		return nil, wrong(name, "%s %s: want a list of tokens", name, excerpt(raw))
	}
	tokens := make([]int32, len(numbers))
	for i, n := range numbers {
		if n < 0 || n > math.MaxInt32 {
			return nil, wrong(name, "%s[%d] %d: want a token", name, i, n)
		}
		tokens[i] = int32(n)
	}
	return tokens, nil
}
