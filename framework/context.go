package framework

import "context"

type conversationKey struct{}

// WithConversation names the conversation that calls with this context belong to. A retriever's plan is then only found by a model's
// call with the same name, and citations reach over the turns of a conversation.
func WithConversation(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, conversationKey{}, id)
}

// ConversationFrom returns the ID given to [WithConversation], or "".
func ConversationFrom(ctx context.Context) string {
	id, _ := ctx.Value(conversationKey{}).(string)
	return id
}
