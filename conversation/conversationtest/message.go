package conversationtest

import "slices"

// Role is whose words a message or a text is. The order is that of trust.
type Role uint8

// Roles.
const (
	Other Role = iota
	Tool
	Assistant
	User
	System
)

// Message is one message of a conversation.
type Message struct {
	Role  Role
	Texts []Text
	Calls []Call // that it makes
}

// Text is one text of a message.
type Text struct {
	Value string
	Role  Role   // if it is not the message's, such as that of a tool result in a user's message
	Call  string // that it answers, "" if it answers none
}

// Call is a call of a tool.
type Call struct{ ID, Tool string }

// role returns whose words a text of the message is.
func (m *Message) role(text int) Role {
	if r := m.Texts[text].Role; r != Other {
		return r
	}
	return m.Role
}

// Same reports whether two lists of messages say the same, byte for byte.
func Same(a, b []Message) bool {
	return slices.EqualFunc(a, b, func(a, b Message) bool {
		return a.Role == b.Role && slices.Equal(a.Texts, b.Texts) && slices.Equal(a.Calls, b.Calls)
	})
}

// textMessage is a message of one text.
func textMessage(role Role, text string) Message {
	return Message{Role: role, Texts: []Text{{Value: text}}}
}

// resultMessage is what a tool has returned for a call.
func resultMessage(call, text string) Message {
	return Message{Role: Tool, Texts: []Text{{Value: text, Call: call}}}
}
