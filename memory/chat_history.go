package memory

import (
	"context"
	"fmt"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/schema"
)

// ChatHistory is a langchaingo chat history that a store keeps, word for word. Safe for concurrent use. It has nothing to
// do with memories: those are what an extractor made of messages.
type ChatHistory struct {
	log   MessageLog
	scope Scope
}

var _ schema.ChatMessageHistory = (*ChatHistory)(nil)

// NewChatHistory returns the history of the conversation that the scope names; every method fails with [ErrNoScope] if it
// names none. Use it as the history of a langchaingo memory:
//
//	buffer := lcmemory.NewConversationBuffer(lcmemory.WithChatHistory(memory.NewChatHistory(store, scope)))
func NewChatHistory(log MessageLog, scope Scope) *ChatHistory { return &ChatHistory{log, scope} }

// AddMessage adds a message of any of langchaingo's types.
func (h *ChatHistory) AddMessage(ctx context.Context, message llms.ChatMessage) error {
	m, err := fromChat(message)
	if err != nil {
		return err
	}
	return h.log.AppendMessages(ctx, h.scope, m)
}

// AddUserMessage adds a text of the user.
func (h *ChatHistory) AddUserMessage(ctx context.Context, text string) error {
	return h.log.AppendMessages(ctx, h.scope, Message{Role: User, Content: text})
}

// AddAIMessage adds a text of the model.
func (h *ChatHistory) AddAIMessage(ctx context.Context, text string) error {
	return h.log.AppendMessages(ctx, h.scope, Message{Role: Assistant, Content: text})
}

// Clear removes all messages.
func (h *ChatHistory) Clear(ctx context.Context) error { return h.log.SetMessages(ctx, h.scope, nil) }

// SetMessages replaces all messages.
func (h *ChatHistory) SetMessages(ctx context.Context, messages []llms.ChatMessage) error {
	out := make([]Message, len(messages))
	for i, message := range messages {
		var err error
		if out[i], err = fromChat(message); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
	}
	return h.log.SetMessages(ctx, h.scope, out)
}

// Messages returns all messages, the oldest first, as they were added.
func (h *ChatHistory) Messages(ctx context.Context) ([]llms.ChatMessage, error) {
	messages, err := h.log.Messages(ctx, h.scope, 0)
	if err != nil {
		return nil, err
	}
	out := make([]llms.ChatMessage, len(messages))
	for i, m := range messages {
		if out[i], err = toChat(m); err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
	}
	return out, nil
}
