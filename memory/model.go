package memory

import (
	"context"
	"errors"
	"fmt"

	"github.com/tmc/langchaingo/llms"
)

// Model answers prompts. Implementations are safe for concurrent use.
type Model interface {
	// Complete returns the answer to a system prompt, which is the same at every call, and a user prompt.
	Complete(ctx context.Context, system, user string) (string, error)
}

// llmModel is a Model over langchaingo's.
type llmModel struct {
	inner   llms.Model
	options []llms.CallOption
}

// FromLLM makes a [Model] of a langchaingo model. It asks with temperature 0 unless an option sets another, and with the
// options given: llms.WithJSONMode where the model knows it.
func FromLLM(inner llms.Model, options ...llms.CallOption) Model {
	return llmModel{inner, append([]llms.CallOption{llms.WithTemperature(0)}, options...)}
}

// Complete sends one system and one human message; an answer without choices is an error.
func (m llmModel) Complete(ctx context.Context, system, user string) (string, error) {
	response, err := m.inner.GenerateContent(ctx, []llms.MessageContent{
		llms.TextParts(llms.ChatMessageTypeSystem, system),
		llms.TextParts(llms.ChatMessageTypeHuman, user),
	}, m.options...)
	if err != nil {
		return "", err
	}
	if response == nil || len(response.Choices) == 0 || response.Choices[0] == nil {
		return "", errors.New("the model gave no answer")
	}
	return response.Choices[0].Content, nil
}

// ask completes, and reads the items of the list at member of the answer. Its error says what they were wanted for.
func ask(ctx context.Context, m Model, what, member, system, user string) ([]item, error) {
	answer, err := m.Complete(ctx, system, user)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrExtraction, what, err)
	}
	return readItems(answer, member)
}
