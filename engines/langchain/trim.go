package langchain

import (
	"context"
	"fmt"
	"slices"

	"github.com/tmc/langchaingo/llms"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation"
)

// trimmed is inner behind a trimmer.
type trimmed struct {
	inner   llms.Model
	trimmer *conversation.Trimmer
}

// Trim returns a model that keeps the messages of each call within the engine's window and hands them to inner, which
// [Wrap] returned: see [conversation.Trimmer]. The caller goes on with all of its messages. Tokens are counted by the pilot's
// tokenizer: of texts, and of names and arguments of tool calls. Images are not counted; keep room for them in o.Answer. A call that
// cannot be made to fit is an error that wraps [conversation.ErrTooLong].
//
// inner sees what is left of a history in full behind a cut: what was a reference there is a whole block again. So nothing
// refers to what is gone; the references that inner makes in place of blocks are not counted as the saving that they are.
func Trim(pilot *contextpilot.Pilot, inner llms.Model, o conversation.TrimOptions) (llms.Model, error) {
	t, err := conversation.NewTrimmer(pilot.Tokenizer(), o)
	if err != nil {
		return nil, fmt.Errorf("langchain: %w", err)
	}
	return inFrontOf(inner, &trimmed{inner: inner, trimmer: t}), nil
}

// Call sends a single prompt.
func (m *trimmed) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, m, prompt, options...)
}

// GenerateContent calls inner with what is left of the messages.
func (m *trimmed) GenerateContent(
	ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption,
) (*llms.ContentResponse, error) {
	got, err := m.trimmer.Trim(ctx, history(messages))
	if err != nil {
		return nil, fmt.Errorf("langchain: %w", err)
	}
	if got.Tail > got.Head {
		messages = left(messages, got)
	}
	return m.inner.GenerateContent(ctx, messages, options...)
}

// left returns the messages that are sent, the first one behind the head with the summary in front.
func left(messages []llms.MessageContent, got conversation.Trimmed) []llms.MessageContent {
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
func history(messages []llms.MessageContent) []conversation.Message {
	out := make([]conversation.Message, len(messages))
	for i, m := range read(messages) {
		out[i] = conversation.Message{Role: m.Role, Texts: m.Texts, Calls: m.Calls}
		if messages[i].Role == llms.ChatMessageTypeGeneric {
			out[i].Role = conversation.User
		}
		for _, other := range m.Other {
			if arguments, ok := other.(string); ok {
				out[i].Texts = append(out[i].Texts, conversation.Text{Value: arguments, Role: conversation.Assistant, Opaque: true})
			}
		}
	}
	return out
}
