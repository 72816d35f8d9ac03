package langchain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"github.com/ragpilot/ragpilot/engines"
)

// request translates a call.
func (m *engineModel) request(messages []llms.MessageContent, options []llms.CallOption) (engines.Request, llms.CallOptions, error) {
	// langchaingo has the same value for a temperature of 0 and for none: NaN, which no caller sets, shows the difference.
	o := applied(options, llms.CallOptions{Temperature: math.NaN()})
	req := engines.Request{
		Model: cmp.Or(o.Model, m.name), MaxTokens: cmp.Or(o.MaxTokens, m.maxTokens),
		Messages: make([]engines.Message, len(messages)),
	}
	if !math.IsNaN(o.Temperature) {
		req.Temperature = &o.Temperature
	}
	for i, msg := range messages {
		var err error
		if req.Messages[i], err = message(msg); err != nil {
			return req, o, fmt.Errorf("message %d: %w", i+1, err)
		}
	}
	if len(o.Tools) > 0 || len(o.Functions) > 0 { // Functions is deprecated but still set
		return req, o, unsupported("%d tools and functions", len(o.Tools)+len(o.Functions))
	}
	if n := max(o.N, o.CandidateCount); n > 1 {
		return req, o, unsupported("%d answers to one request", n)
	}
	var err error
	req.Extra, err = extra(&o, m.context)
	return req, o, err
}

// message translates one message.
func message(msg llms.MessageContent) (engines.Message, error) {
	var role engines.Role
	switch msg.Role {
	case llms.ChatMessageTypeSystem:
		role = engines.System
	case llms.ChatMessageTypeHuman, llms.ChatMessageTypeGeneric:
		role = engines.User
	case llms.ChatMessageTypeAI:
		role = engines.Assistant
	default:
		return engines.Message{}, unsupported("a message of role %q", msg.Role)
	}
	texts := make([]string, len(msg.Parts))
	for i, part := range msg.Parts {
		text, ok := textOf(part)
		if !ok {
			return engines.Message{}, unsupported("part %d, %s", i+1, nameOf(part))
		}
		texts[i] = text
	}
	return engines.Message{Role: role, Content: strings.Join(texts, "\n")}, nil
}

// nameOf says what a part is, for an error; the content may be large or private.
func nameOf(part llms.ContentPart) string {
	switch p := part.(type) {
	case llms.ImageURLContent:
		return "an image URL"
	case llms.BinaryContent:
		return fmt.Sprintf("binary content of type %q", p.MIMEType)
	case llms.ToolCall:
		return "a tool call"
	case llms.ToolCallResponse:
		return "a tool's response"
	case llms.CachedContent:
		return nameOf(p.ContentPart)
	}
	return fmt.Sprintf("a %T", part)
}

// extra returns the members of the OpenAI body that engines.Request has no field for. 0 and empty mean unset.
func extra(o *llms.CallOptions, context string) (map[string]json.RawMessage, error) {
	members := map[string]any{}
	set := func(name string, value any, is bool) {
		if is {
			members[name] = value
		}
	}
	set("context", context, context != "")
	set("stop", o.StopWords, len(o.StopWords) > 0)
	set("top_k", o.TopK, o.TopK != 0)
	set("top_p", o.TopP, o.TopP != 0)
	set("seed", o.Seed, o.Seed != 0)
	set("repetition_penalty", o.RepetitionPenalty, o.RepetitionPenalty != 0)
	set("frequency_penalty", o.FrequencyPenalty, o.FrequencyPenalty != 0)
	set("presence_penalty", o.PresencePenalty, o.PresencePenalty != 0)
	set("response_format", map[string]string{"type": "json_object"}, o.JSONMode || o.ResponseMIMEType == "application/json")
	if len(members) == 0 {
		return nil, nil
	}
	out := make(map[string]json.RawMessage, len(members))
	for name, value := range members {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("option %s: %w", name, err) // a number that is not finite
		}
		out[name] = raw
	}
	return out, nil
}
