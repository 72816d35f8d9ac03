package genkit_test

import (
	"context"
	"testing"

	"github.com/firebase/genkit/go/ai"

	"github.com/ragpilot/ragpilot/adapters/genkit"
	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation/conversationtest"
	"github.com/ragpilot/ragpilot/framework/frameworktest"
)

func TestScript(t *testing.T) {
	frameworktest.Run(t, "Genkit", func(pilot *contextpilot.Pilot, scope contextpilot.Scope, replace bool) frameworktest.Ask {
		opts := []genkit.Option{genkit.WithScope(scope)}
		if replace {
			opts = append(opts, genkit.WithToolResults())
		}
		m := genkit.Middleware(pilot, opts...)(arrive)
		return func(ctx context.Context, messages []conversationtest.Message) error {
			_, err := m(ctx, &ai.ModelRequest{Messages: toMessages(messages)}, nil)
			return err
		}
	})
}

// arrive is a model that says what arrived, a named fake.
func arrive(ctx context.Context, req *ai.ModelRequest, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
	if err := frameworktest.Arrive(ctx, fromMessages(req.Messages)); err != nil {
		return nil, err
	}
	return &ai.ModelResponse{Request: req, Message: ai.NewModelTextMessage("An answer.")}, nil
}

var scriptRoles = map[conversationtest.Role]ai.Role{
	conversationtest.System: ai.RoleSystem, conversationtest.User: ai.RoleUser, conversationtest.Assistant: ai.RoleModel,
	conversationtest.Tool: ai.RoleTool,
}

func toMessages(messages []conversationtest.Message) []*ai.Message {
	out := make([]*ai.Message, len(messages))
	for i, m := range messages {
		text := m.Texts[0]
		part := ai.NewTextPart(text.Value)
		if m.Role == conversationtest.Tool {
			part = ai.NewToolResponsePart(&ai.ToolResponse{Ref: text.Call, Name: "tool_" + text.Call, Output: text.Value})
		}
		out[i] = ai.NewMessage(scriptRoles[m.Role], nil, part)
		for _, call := range m.Calls {
			out[i].Content = append(out[i].Content, ai.NewToolRequestPart(&ai.ToolRequest{Ref: call.ID, Name: call.Tool}))
		}
	}
	return out
}

func fromMessages(messages []*ai.Message) []conversationtest.Message {
	out := make([]conversationtest.Message, len(messages))
	for i, m := range messages {
		out[i].Role = frameworktest.RoleOf(scriptRoles, m.Role)
		for _, part := range m.Content {
			switch {
			case part.IsToolResponse():
				out[i].Texts = append(out[i].Texts, conversationtest.Text{Value: part.ToolResponse.Output.(string), Call: part.ToolResponse.Ref})
			case part.IsToolRequest():
				out[i].Calls = append(out[i].Calls, conversationtest.Call{ID: part.ToolRequest.Ref, Tool: part.ToolRequest.Name})
			default:
				out[i].Texts = append(out[i].Texts, conversationtest.Text{Value: part.Text})
			}
		}
	}
	return out
}
