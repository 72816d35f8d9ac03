package langchain

import (
	"slices"

	"github.com/tmc/langchaingo/llms"

	"github.com/ragpilot/ragpilot/internal/adapter"
)

// texts returns the messages' roles and texts.
func texts(messages []llms.MessageContent) []adapter.Message {
	out := make([]adapter.Message, len(messages))
	for i, msg := range messages {
		out[i].Role = roleOf(msg.Role)
		for _, part := range msg.Parts {
			if text, ok := textOf(part); ok {
				out[i].Texts = append(out[i].Texts, text)
			}
		}
	}
	return out
}

func roleOf(role llms.ChatMessageType) adapter.Role {
	switch role {
	case llms.ChatMessageTypeSystem:
		return adapter.System
	case llms.ChatMessageTypeHuman:
		return adapter.User
	case llms.ChatMessageTypeTool, llms.ChatMessageTypeFunction:
		return adapter.Tool
	default:
		return adapter.Assistant
	}
}

// replaced returns the messages with other texts, copied as far as they are other ones.
func replaced(messages []llms.MessageContent, with []adapter.Replacement) []llms.MessageContent {
	if len(with) == 0 {
		return messages
	}
	messages = slices.Clone(messages)
	for _, r := range with {
		parts := slices.Clone(messages[r.Message].Parts)
		part := partOf(parts, r.Text)
		parts[part] = withText(parts[part], r.With)
		messages[r.Message].Parts = parts
	}
	return messages
}

// partOf returns the index of a text among the parts.
func partOf(parts []llms.ContentPart, text int) int {
	for i, part := range parts {
		if _, ok := textOf(part); !ok {
			continue
		}
		if text == 0 {
			return i
		}
		text--
	}
	return -1 // not for a text of these parts
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

// withText returns a copy of a text part with another text.
func withText(part llms.ContentPart, text string) llms.ContentPart {
	if c, ok := part.(llms.CachedContent); ok {
		c.ContentPart = withText(c.ContentPart, text)
		return c
	}
	return llms.TextContent{Text: text}
}
