package eino_test

import (
	"context"
	"errors"
	"testing"

	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"

	"github.com/ragpilot/ragpilot/adapters/eino"
	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation/conversationtest"
	"github.com/ragpilot/ragpilot/framework/frameworktest"
)

func TestScript(t *testing.T) {
	frameworktest.Run(t, "Eino", func(pilot *contextpilot.Pilot, scope contextpilot.Scope, replace bool) frameworktest.Ask {
		opts := []eino.Option{eino.WithScope(scope)}
		if replace {
			opts = append(opts, eino.WithToolResults())
		}
		m := eino.ChatModel(pilot, arrivals{}, opts...)
		return func(ctx context.Context, messages []conversationtest.Message) error {
			_, err := m.Generate(ctx, toMessages(messages))
			return err
		}
	})
}

// arrivals is a model that says what arrived, a named fake.
type arrivals struct{}

func (arrivals) Generate(ctx context.Context, input []*schema.Message, _ ...model.Option) (*schema.Message, error) {
	if err := frameworktest.Arrive(ctx, fromMessages(input)); err != nil {
		return nil, err
	}
	return schema.AssistantMessage("An answer.", nil), nil
}

func (arrivals) Stream(context.Context, []*schema.Message, ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	return nil, errors.ErrUnsupported
}

var scriptRoles = map[conversationtest.Role]schema.RoleType{
	conversationtest.System: schema.System, conversationtest.User: schema.User, conversationtest.Assistant: schema.Assistant,
	conversationtest.Tool: schema.Tool,
}

func toMessages(messages []conversationtest.Message) []*schema.Message {
	out := make([]*schema.Message, len(messages))
	for i, m := range messages {
		out[i] = &schema.Message{Role: scriptRoles[m.Role], Content: m.Texts[0].Value, ToolCallID: m.Texts[0].Call}
		for _, call := range m.Calls {
			out[i].ToolCalls = append(out[i].ToolCalls, schema.ToolCall{ID: call.ID, Function: schema.FunctionCall{Name: call.Tool}})
		}
	}
	return out
}

func fromMessages(messages []*schema.Message) []conversationtest.Message {
	out := make([]conversationtest.Message, len(messages))
	for i, m := range messages {
		out[i].Role = frameworktest.RoleOf(scriptRoles, m.Role)
		out[i].Texts = []conversationtest.Text{{Value: m.Content, Call: m.ToolCallID}}
		for _, call := range m.ToolCalls {
			out[i].Calls = append(out[i].Calls, conversationtest.Call{ID: call.ID, Tool: call.Function.Name})
		}
	}
	return out
}
