package llamacpp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/ragpilot/ragpilot/engines"
)

// tokens returns the tokens that the server will make of a chat.
func (e *Engine) tokens(ctx context.Context, req engines.Request, extra map[string]json.RawMessage) ([]token, error) {
	c, err := e.context(extra, readOptions(extra))
	if err != nil {
		return nil, err
	}
	if c != nil {
		return e.behind(ctx, c, req, extra)
	}
	prompt, err := e.render(ctx, req, extra)
	if err != nil {
		return nil, err
	}
	// The chat endpoint reads its prompt with special tokens, and adds those that the model wants in front.
	return e.tokenize(ctx, prompt, true)
}

// render returns the text that the server will make of a chat. Templates look at more than the messages (tools,
// chat_template_kwargs), so the server gets all members of the request that it will get with the chat.
func (e *Engine) render(ctx context.Context, req engines.Request, extra map[string]json.RawMessage) (string, error) {
	body := map[string]any{"messages": req.Messages}
	if model := cmp.Or(req.Model, e.config.Server.Model); model != "" {
		body["model"] = model
	}
	for name, value := range extra {
		body[name] = value
	}
	var templated struct {
		Prompt *string `json:"prompt"`
	}
	if err := e.ask(ctx, "/apply-template", body, &templated); err != nil {
		return "", err
	}
	if templated.Prompt == nil {
		return "", fmt.Errorf("engine %s: answer of /apply-template has no prompt", e.Name())
	}
	return *templated.Prompt, nil
}

// tokenize returns the tokens of a text, as the beginning of a prompt or as a part from its middle.
func (e *Engine) tokenize(ctx context.Context, text string, start bool) ([]token, error) {
	var reply struct {
		Tokens []token `json:"tokens"`
	}
	err := e.ask(ctx, "/tokenize", map[string]any{"content": text, "add_special": start, "parse_special": start}, &reply)
	return reply.Tokens, err
}

func (e *Engine) ask(ctx context.Context, path string, body map[string]any, v any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return fmt.Errorf("body for %s: %w", path, err)
	}
	return e.client.post(ctx, path, b.Bytes(), v)
}

// extras returns the members that a request adds to its body: the configuration's, and over them its own.
func (e *Engine) extras(req engines.Request) map[string]json.RawMessage {
	extra := maps.Clone(e.config.Server.Extra)
	if extra == nil {
		extra = make(map[string]json.RawMessage, len(req.Extra))
	}
	maps.Copy(extra, req.Extra)
	maps.DeleteFunc(extra, func(_ string, value json.RawMessage) bool { return len(value) == 0 })
	return extra
}
