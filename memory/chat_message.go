package memory

import (
	"encoding/json"
	"fmt"

	"github.com/tmc/langchaingo/llms"
)

// chatRoles are the roles of langchaingo's types.
var chatRoles = map[llms.ChatMessageType]Role{
	llms.ChatMessageTypeHuman: User, llms.ChatMessageTypeAI: Assistant, llms.ChatMessageTypeSystem: System,
	llms.ChatMessageTypeTool: Tool,
}

// extra is a langchaingo message that is more than role and text.
type extra struct {
	Type    llms.ChatMessageType `json:"type"`
	Message json.RawMessage      `json:"message"`
}

// fromChat keeps in Extra what role and text do not say.
func fromChat(message llms.ChatMessage) (Message, error) {
	if message == nil {
		return Message{}, fmt.Errorf("%w: a message is nil", ErrInvalid)
	}
	kind := message.GetType()
	role, ok := chatRoles[kind]
	if !ok {
		role = Role(kind)
	}
	out := Message{Role: role, Content: message.GetContent()}
	if named, ok := message.(llms.Named); ok {
		out.Name = named.GetName()
	}
	if simple, err := toChat(out); err == nil && same(simple, message) {
		return out, nil
	}
	raw, err := encodeChat(message)
	if err != nil {
		return Message{}, fmt.Errorf("%w: a message of type %s: %w", ErrInvalid, kind, err)
	}
	out.Extra, err = json.Marshal(extra{kind, raw})
	return out, err
}

// same reports whether two messages are equal in what JSON shows of them.
func same(a, b llms.ChatMessage) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return a.GetType() == b.GetType() && errX == nil && errY == nil && string(x) == string(y)
}

// toChat makes the message again.
func toChat(m Message) (llms.ChatMessage, error) {
	if len(m.Extra) == 0 {
		switch m.Role {
		case User:
			return llms.HumanChatMessage{Content: m.Content}, nil
		case Assistant:
			return llms.AIChatMessage{Content: m.Content}, nil
		case System:
			return llms.SystemChatMessage{Content: m.Content}, nil
		}
		return llms.GenericChatMessage{Role: string(m.Role), Name: m.Name, Content: m.Content}, nil
	}
	var e extra
	if err := json.Unmarshal(m.Extra, &e); err != nil {
		return nil, fmt.Errorf("%w: extra: %w", ErrInvalid, err)
	}
	switch e.Type {
	case llms.ChatMessageTypeAI:
		return decodeAI(e)
	case llms.ChatMessageTypeHuman:
		return decodeChat[llms.HumanChatMessage](e)
	case llms.ChatMessageTypeSystem:
		return decodeChat[llms.SystemChatMessage](e)
	case llms.ChatMessageTypeTool:
		return decodeChat[llms.ToolChatMessage](e)
	case llms.ChatMessageTypeFunction:
		return decodeChat[llms.FunctionChatMessage](e)
	case llms.ChatMessageTypeGeneric:
		return decodeChat[llms.GenericChatMessage](e)
	}
	return nil, fmt.Errorf("%w: a message of type %q", ErrInvalid, e.Type)
}

func decodeChat[M llms.ChatMessage](e extra) (llms.ChatMessage, error) {
	var m M
	if err := json.Unmarshal(e.Message, &m); err != nil {
		return nil, fmt.Errorf("%w: a message of type %q: %w", ErrInvalid, e.Type, err)
	}
	return m, nil
}

// aiMessage is an AIChatMessage in JSON. langchaingo's own form of a tool call loses name and arguments when it is read.
type aiMessage struct {
	Content      string             `json:"content,omitempty"`
	FunctionCall *llms.FunctionCall `json:"function_call,omitempty"`
	ToolCalls    []toolCall         `json:"tool_calls,omitempty"`
	Reasoning    string             `json:"reasoning_content,omitempty"`
}

type toolCall struct {
	ID       string             `json:"id"`
	Type     string             `json:"type"`
	Function *llms.FunctionCall `json:"function,omitempty"`
}

func encodeChat(message llms.ChatMessage) ([]byte, error) {
	ai, ok := message.(llms.AIChatMessage)
	if !ok {
		return json.Marshal(message)
	}
	out := aiMessage{Content: ai.Content, FunctionCall: ai.FunctionCall, Reasoning: ai.ReasoningContent}
	for _, c := range ai.ToolCalls {
		out.ToolCalls = append(out.ToolCalls, toolCall{c.ID, c.Type, c.FunctionCall})
	}
	return json.Marshal(out)
}

func decodeAI(e extra) (llms.ChatMessage, error) {
	var m aiMessage
	if err := json.Unmarshal(e.Message, &m); err != nil {
		return nil, fmt.Errorf("%w: a message of type %q: %w", ErrInvalid, e.Type, err)
	}
	out := llms.AIChatMessage{Content: m.Content, FunctionCall: m.FunctionCall, ReasoningContent: m.Reasoning}
	for _, c := range m.ToolCalls {
		out.ToolCalls = append(out.ToolCalls, llms.ToolCall{ID: c.ID, Type: c.Type, FunctionCall: c.Function})
	}
	return out, nil
}
