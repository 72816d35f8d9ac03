package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/ragpilot/ragpilot/engines"
)

// TokenizeChat returns the tokens of a chat as the server makes them for an answer: in the form of vLLM, SGLang and the local engine's
// server, or in that of llama.cpp. A server that has neither is [errors.ErrUnsupported].
func (e *Engine) TokenizeChat(ctx context.Context, messages []engines.Message) ([]int32, error) {
	var tokens []int32
	var err error
	if !e.templates.Load() {
		tokens, err = e.tokenize(ctx, map[string]any{"messages": messages, "add_generation_prompt": true})
		if err == nil && len(tokens) > 0 {
			return tokens, nil
		}
		if errors.Is(err, engines.ErrUnreachable) || ctx.Err() != nil {
			return nil, err
		}
	}
	var templated struct {
		Prompt string `json:"prompt"`
	}
	answer, err := e.post(ctx, "/apply-template", map[string]any{"messages": messages})
	if err == nil {
		err = json.Unmarshal(answer, &templated)
	}
	if err == nil && templated.Prompt != "" {
		tokens, err = e.tokenize(ctx, map[string]any{"content": templated.Prompt, "add_special": true, "parse_special": true})
	}
	if err == nil && len(tokens) > 0 {
		e.templates.Store(true)
		return tokens, nil
	}
	if errors.Is(err, engines.ErrUnreachable) || ctx.Err() != nil {
		return nil, err
	}
	return nil, fmt.Errorf("engine %s: the tokens of a chat: %w", e.Name(), errors.ErrUnsupported)
}

// tokenize asks for tokens.
func (e *Engine) tokenize(ctx context.Context, body map[string]any) ([]int32, error) {
	answer, err := e.post(ctx, "/tokenize", body)
	if err != nil {
		return nil, err
	}
	var reply struct {
		Tokens []int32 `json:"tokens"`
	}
	err = json.Unmarshal(answer, &reply)
	return reply.Tokens, err
}

func (e *Engine) post(ctx context.Context, path string, body map[string]any) ([]byte, error) {
	if e.config.Model != "" {
		body["model"] = e.config.Model
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return e.Do(ctx, http.MethodPost, path, raw)
}
