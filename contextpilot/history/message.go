package history

import "strings"

// Role says whose message it is, in the words of chat APIs.
type Role string

// The roles of messages.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Message is one message of a conversation.
type Message struct {
	Role Role
	Text string
	// Calls are the IDs of the tool calls that an assistant's message makes, and Answers those that a tool's message answers.
	// A message with calls is never sent without the answers to them, nor an answer without its call.
	Calls, Answers []string
	// Extra is the number of tokens that the message takes beside its text: names and arguments of tool calls, images.
	Extra int
}

// joints returns for each place between messages, and for both ends, whether the messages can be cut there: no tool call
// in front of it has its answer behind it.
func joints(messages []Message) []bool {
	ok := make([]bool, len(messages)+1)
	open := map[string]bool{}
	for i, m := range messages {
		ok[i] = len(open) == 0 && m.Role != Tool
		switch m.Role {
		case Tool:
			for _, id := range m.Answers {
				delete(open, id)
			}
		case User, System: // what is not answered by now never will be
			clear(open)
			ok[i] = true
		}
		for _, id := range m.Calls {
			open[id] = true
		}
	}
	ok[len(messages)] = true
	return ok
}

// asLines ends a text that is not empty with an empty line.
func asLines(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return text + "\n\n"
}
