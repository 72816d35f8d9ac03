package langchain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/contextpilot/history"
	"github.com/ragpilot/ragpilot/conversation"
)

// trimmed is inner behind a trimmer.
type trimmed struct {
	inner   llms.Model
	pilot   *contextpilot.Pilot
	trimmer *history.Trimmer
}

// Trim returns a model that keeps the messages of each call within the engine's window and hands them to inner, which
// [Wrap] returned: see [history.Trimmer]. The caller goes on with all of its messages. Of cfg, Scope,
// System, Session and Blocks are not used. Tokens are counted by the pilot's tokenizer: of texts, and of
// names and arguments of tool calls. Images are not counted; keep room for them in cfg.Answer. A call that cannot be made to
// fit is an error that wraps [history.ErrTooLong]; Trim's own errors wrap [history.ErrBadConfig].
//
// inner sees what is left of a history in full behind a cut: what was a reference there is a whole block again. So nothing
// refers to what is gone; the references that inner makes in place of blocks are not counted as the saving that they are.
func Trim(pilot *contextpilot.Pilot, inner llms.Model, cfg history.Config) (llms.Model, error) {
	t, err := history.NewTrimmer(pilot.Tokenizer(), cfg)
	if err != nil {
		return nil, fmt.Errorf("langchain: %w", err)
	}
	return inFrontOf(inner, &trimmed{inner: inner, pilot: pilot, trimmer: t}), nil
}

// Call sends a single prompt.
func (m *trimmed) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, m, prompt, options...)
}

// GenerateContent calls inner with what is left of the messages.
func (m *trimmed) GenerateContent(
	ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption,
) (*llms.ContentResponse, error) {
	got, err := m.trimmer.Trim(ctx, m.history(messages))
	if err != nil {
		return nil, fmt.Errorf("langchain: %w", err)
	}
	if got.Tail > got.Head {
		messages = m.left(messages, got)
	}
	return m.inner.GenerateContent(ctx, messages, options...)
}

// left returns the messages that are sent, the first one behind the head with the summary in front.
func (m *trimmed) left(messages []llms.MessageContent, got history.Trimmed) []llms.MessageContent {
	out := slices.Clone(messages[:got.Head])
	if got.Alone >= 0 {
		out = append(out, messages[got.Alone])
	}
	out = append(out, messages[got.Tail:]...)
	if got.Summary == "" || got.Head >= len(out) {
		return out
	}
	first := &out[got.Head]
	for i, part := range first.Parts {
		if text, ok := textOf(part); ok {
			first.Parts = slices.Clone(first.Parts)
			first.Parts[i] = visited(part, func(conversation.Text) string { return got.Summary + text })
			return out
		}
	}
	first.Parts = append([]llms.ContentPart{llms.TextContent{Text: got.Summary}}, first.Parts...)
	return out
}

// history returns the messages as a trimmer knows them.
func (m *trimmed) history(messages []llms.MessageContent) []history.Message {
	out := make([]history.Message, len(messages))
	for i, msg := range messages {
		h := &out[i]
		h.Text = strings.Join(textsOf(msg), "")
		switch msg.Role {
		case llms.ChatMessageTypeSystem:
			h.Role = history.System
		case llms.ChatMessageTypeHuman, llms.ChatMessageTypeGeneric:
			h.Role = history.User
		case llms.ChatMessageTypeTool, llms.ChatMessageTypeFunction:
			h.Role = history.Tool
		default:
			h.Role = history.Assistant
		}
		for _, part := range msg.Parts {
			m.tool(h, part)
		}
	}
	return out
}

// perCall is the number of tokens that chat templates put around a tool call or its result, at most.
const perCall = 24

// tool adds what a part says of tools.
func (m *trimmed) tool(h *history.Message, part llms.ContentPart) {
	count := m.pilot.Tokenizer().Count
	switch p := part.(type) {
	case llms.ToolCall:
		h.Calls = append(h.Calls, p.ID)
		h.Extra += perCall
		if p.FunctionCall != nil {
			h.Extra += count(p.FunctionCall.Name) + count(p.FunctionCall.Arguments)
		}
	case llms.ToolCallResponse:
		h.Answers = append(h.Answers, p.ToolCallID)
		h.Extra += perCall + count(p.Name) + count(p.Content)
	}
}

// textsOf returns a message's texts.
func textsOf(msg llms.MessageContent) (out []string) {
	for _, part := range msg.Parts {
		if text, ok := textOf(part); ok {
			out = append(out, text)
		}
	}
	return out
}
