package genkit

import (
	"slices"

	"github.com/firebase/genkit/go/ai"

	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/stabilise"
)

// form is how Genkit writes messages.
var form = framework.Form[*ai.Message]{
	Read:  read,
	Visit: visitedMessage,
	Add: func(m *ai.Message, text string) *ai.Message {
		out := *m
		out.Content = append(slices.Clone(m.Content), ai.NewTextPart(text))
		return &out
	},
	New: func(role conversation.Role, text string) *ai.Message {
		if role == conversation.System {
			return ai.NewSystemTextMessage(text)
		}
		return ai.NewUserTextMessage(text)
	},
	Clean: func(m *ai.Message) *ai.Message {
		out := *m
		out.Content = slices.DeleteFunc(slices.Clone(m.Content), func(p *ai.Part) bool { return p.IsText() && p.Text == "" })
		return &out
	},
}

// stabilised returns what is sent of a request, which is not changed.
func stabilised(s *stabilise.Stabiliser, name string, req *ai.ModelRequest) *ai.ModelRequest {
	if s == nil {
		return req
	}
	out := *req
	messages, begins := framework.Stabilised(s, name, req.Messages, form)
	out.Messages = messages
	label := func(t *ai.ToolDefinition) string { return t.Name }
	out.Tools = framework.StabilisedTools(s, name, begins, req.Tools, label, withSchemas)
	return &out
}

// withSchemas returns a tool whose schemas are written in their order.
func withSchemas(t *ai.ToolDefinition, value func(any) any) *ai.ToolDefinition {
	out := *t
	if t.InputSchema != nil {
		out.InputSchema, _ = value(t.InputSchema).(map[string]any)
	}
	if t.OutputSchema != nil {
		out.OutputSchema, _ = value(t.OutputSchema).(map[string]any)
	}
	return &out
}
