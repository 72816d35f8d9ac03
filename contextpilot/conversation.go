package contextpilot

import "context"

type conversationKey struct{}

// WithConversation names the conversation that calls with this context belong to. Wrappers of frameworks that
// have no place for such an ID read it; the core never does.
func WithConversation(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, conversationKey{}, id)
}

// ConversationFrom returns the ID given to WithConversation, or "".
func ConversationFrom(ctx context.Context) string {
	id, _ := ctx.Value(conversationKey{}).(string)
	return id
}
