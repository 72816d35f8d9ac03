package selfhosted

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/ragpilot/ragpilot/engines"
)

// textQuestion is the body of /tokenize for a text.
func textQuestion(model, text string) []byte {
	return question(model, map[string]any{"prompt": text, "add_special_tokens": false})
}

// chatQuestion is the body of /tokenize for a chat, whose template the server applies.
func chatQuestion(model string, messages []engines.Message) []byte {
	return question(model, map[string]any{"messages": messages})
}

func question(model string, members map[string]any) []byte {
	if model != "" {
		members["model"] = model
	}
	return encode(members)
}

// promptMembers are the members of a request on which its prompt's tokens depend. /tokenize takes them under the same names.
var promptMembers = []string{
	"model", "messages", "prompt", "tools", "chat_template", "chat_template_kwargs", "add_generation_prompt",
	"continue_final_message", "add_special_tokens", "mm_processor_kwargs",
}

// requestQuestion is the body of /tokenize for a request's prompt, or the tokens themselves if the request has them.
func requestQuestion(body []byte) (question []byte, tokens []uint32, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, nil, fmt.Errorf("body of a request: %w", err)
	}
	out := make(map[string]json.RawMessage, len(promptMembers))
	for _, name := range promptMembers {
		if v, ok := members[name]; ok {
			out[name] = v
		}
	}
	prompt, plain := out["prompt"]
	if _, chat := out["messages"]; chat == plain {
		return nil, nil, errors.New("body of a request: want messages or a prompt")
	}
	if plain && json.Unmarshal(prompt, new(string)) != nil {
		if json.Unmarshal(prompt, &tokens) != nil || len(tokens) == 0 {
			return nil, nil, errors.New("body of a request: the prompt is neither a text nor tokens")
		}
		return nil, tokens, nil
	}
	return encode(out), nil, nil
}

// parseTokens reads an answer of /tokenize.
func parseTokens(answer []byte) ([]uint32, error) {
	var a struct {
		Count  *int     `json:"count"`
		Tokens []uint32 `json:"tokens"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return nil, fmt.Errorf("answer of /tokenize: %w", err)
	}
	if a.Tokens == nil {
		return nil, errors.New("answer of /tokenize has no tokens")
	}
	if a.Count != nil && *a.Count != len(a.Tokens) {
		return nil, fmt.Errorf("answer of /tokenize counts %d tokens and has %d", *a.Count, len(a.Tokens))
	}
	return a.Tokens, nil
}

// With returns the members of a body with more of them; those that are there win. Nothing is changed in place.
func With(extra, more map[string]json.RawMessage) map[string]json.RawMessage {
	if len(more) == 0 {
		return extra
	}
	out := maps.Clone(more)
	maps.Copy(out, extra)
	return out
}

// Text reads a member that is a text, "" if it is not there. ok is false if it is something else.
func Text(raw json.RawMessage) (text string, ok bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", true
	}
	return text, json.Unmarshal(raw, &text) == nil
}

func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings always encode
	}
	return raw
}
