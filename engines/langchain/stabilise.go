package langchain

import (
	"slices"

	"github.com/tmc/langchaingo/llms"

	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/stabilise"
)

// WithStabiliser keeps the beginnings of prompts as they were: the order of tools, the members of their schemas, lines with the time,
// memories; see [stabilise.Config]. Texts that leave the system message become notes in human messages. With [stabilise.PlaceSystem] they
// become system messages of their own, for models that take these behind others. Schemas that are neither maps nor nil become
// json.RawMessage. One stabiliser may serve several models. Name the conversation in the context, see [framework.WithConversation].
func WithStabiliser(s *stabilise.Stabiliser) Option {
	return func(o *settings) { o.stabiliser = s }
}

// form is how langchaingo writes messages.
var form = framework.Form[llms.MessageContent]{
	Read:  read,
	Visit: visitedMessage,
	Add: func(m llms.MessageContent, text string) llms.MessageContent {
		m.Parts = append(slices.Clone(m.Parts), llms.TextContent{Text: text})
		return m
	},
	New: func(role conversation.Role, text string) llms.MessageContent {
		if role == conversation.System {
			return llms.TextParts(llms.ChatMessageTypeSystem, text)
		}
		return llms.TextParts(llms.ChatMessageTypeHuman, text)
	},
	Clean: func(m llms.MessageContent) llms.MessageContent {
		m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p llms.ContentPart) bool {
			text, ok := textOf(p)
			return ok && text == ""
		})
		return m
	},
}

// stabilised returns what is sent of a call.
func (s *settings) stabilised(
	name string, messages []llms.MessageContent, options []llms.CallOption,
) ([]llms.MessageContent, []llms.CallOption) {
	if s.stabiliser == nil {
		return messages, options
	}
	messages, begins := framework.Stabilised(s.stabiliser, name, messages, form)
	tools := applied(options, llms.CallOptions{}).Tools
	if len(tools) == 0 {
		return messages, options
	}
	tools = framework.StabilisedTools(s.stabiliser, name, begins, tools, toolName, withSchema)
	return messages, append(slices.Clone(options), llms.WithTools(tools))
}

func toolName(t llms.Tool) string {
	if t.Function == nil {
		return t.Type
	}
	return t.Function.Name
}

func withSchema(t llms.Tool, value func(any) any) llms.Tool {
	if t.Function != nil {
		f := *t.Function
		f.Parameters = value(f.Parameters)
		t.Function = &f
	}
	return t
}
