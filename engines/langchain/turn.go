package langchain

import (
	"slices"

	"github.com/tmc/langchaingo/llms"

	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/framework"
)

// read returns the messages as they are looked at.
func read(messages []llms.MessageContent) []framework.Message {
	out := make([]framework.Message, len(messages))
	for i, msg := range messages {
		m := &out[i]
		m.Role = roleOf(msg.Role)
		note := func(text conversation.Text) string {
			m.Texts = append(m.Texts, text)
			return text.Value
		}
		for _, part := range msg.Parts {
			texts := len(m.Texts)
			if visited(part, note); len(m.Texts) > texts {
				continue
			}
			if call, ok := part.(llms.ToolCall); ok && call.FunctionCall != nil {
				m.Calls = append(m.Calls, conversation.Call{ID: call.ID, Tool: call.FunctionCall.Name})
				m.Other = append(m.Other, call.FunctionCall.Arguments)
				continue
			}
			m.Other = append(m.Other, part)
		}
	}
	return out
}

func roleOf(role llms.ChatMessageType) conversation.Role {
	switch role {
	case llms.ChatMessageTypeSystem:
		return conversation.System
	case llms.ChatMessageTypeHuman:
		return conversation.User
	case llms.ChatMessageTypeTool, llms.ChatMessageTypeFunction:
		return conversation.Tool
	default:
		return conversation.Assistant
	}
}

// visitedMessage calls visit for each text of a message, and returns a copy with what that returns.
func visitedMessage(message llms.MessageContent, visit func(conversation.Text) string) llms.MessageContent {
	message.Parts = slices.Clone(message.Parts)
	for i, part := range message.Parts {
		message.Parts[i] = visited(part, visit)
	}
	return message
}

// visited calls visit for the text that a part has, if it has one, and returns the part with what that returns. A part that is
// marked for a provider's cache stays so.
func visited(part llms.ContentPart, visit func(conversation.Text) string) llms.ContentPart {
	switch p := part.(type) {
	case llms.TextContent:
		return llms.TextContent{Text: visit(conversation.Text{Value: p.Text})}
	case *llms.TextContent:
		if p != nil {
			if with := visit(conversation.Text{Value: p.Text}); with != p.Text {
				return llms.TextContent{Text: with}
			}
		}
	case llms.ToolCallResponse:
		p.Content = visit(result(&p))
		return p
	case *llms.ToolCallResponse:
		if p != nil {
			if with := visit(result(p)); with != p.Content {
				other := *p
				other.Content = with
				return other
			}
		}
	case llms.CachedContent:
		p.ContentPart = visited(p.ContentPart, visit)
		return p
	}
	return part
}

// result is what a tool has returned. The functions of before tools have no IDs.
func result(p *llms.ToolCallResponse) conversation.Text {
	return conversation.Text{Value: p.Content, Role: conversation.Tool, Call: p.ToolCallID, Tool: p.Name}
}

// textOf returns the text of a text part, also of one that is marked for a provider's cache.
func textOf(part llms.ContentPart) (string, bool) {
	switch p := part.(type) {
	case llms.TextContent:
		return p.Text, true
	case *llms.TextContent:
		if p != nil {
			return p.Text, true
		}
	case llms.CachedContent:
		return textOf(p.ContentPart)
	}
	return "", false
}
