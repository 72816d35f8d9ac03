package langchain_test

import (
	"context"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation/conversationtest"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/framework/frameworktest"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func TestScript(t *testing.T) {
	if testing.Short() { // one goroutine is at work for most of the time
		testkit.NotUnderRace(t)
	}
	frameworktest.Run(t, "langchaingo", func(pilot *contextpilot.Pilot, scope contextpilot.Scope, replace bool) frameworktest.Ask {
		opts := []langchain.Option{langchain.WithScope(scope)}
		if replace {
			opts = append(opts, langchain.WithToolResults())
		}
		model := langchain.Wrap(pilot, arrivals{}, opts...)
		return func(ctx context.Context, messages []conversationtest.Message) error {
			_, err := model.GenerateContent(ctx, toContents(messages))
			return err
		}
	})
}

// arrivals is a model that says what arrived, a named fake.
type arrivals struct{}

func (a arrivals) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, a, prompt, options...)
}

func (arrivals) GenerateContent(ctx context.Context, messages []llms.MessageContent, _ ...llms.CallOption) (*llms.ContentResponse, error) {
	if err := frameworktest.Arrive(ctx, fromContents(messages)); err != nil {
		return nil, err
	}
	return answer("An answer.", nil), nil
}

var scriptRoles = map[conversationtest.Role]llms.ChatMessageType{
	conversationtest.System: llms.ChatMessageTypeSystem, conversationtest.User: llms.ChatMessageTypeHuman,
	conversationtest.Assistant: llms.ChatMessageTypeAI, conversationtest.Tool: llms.ChatMessageTypeTool,
}

func toContents(messages []conversationtest.Message) []llms.MessageContent {
	out := make([]llms.MessageContent, len(messages))
	for i, m := range messages {
		out[i].Role = scriptRoles[m.Role]
		for _, text := range m.Texts {
			var part llms.ContentPart = llms.TextContent{Text: text.Value}
			if m.Role == conversationtest.Tool {
				part = llms.ToolCallResponse{ToolCallID: text.Call, Content: text.Value}
			}
			out[i].Parts = append(out[i].Parts, part)
		}
		for _, call := range m.Calls {
			out[i].Parts = append(out[i].Parts, llms.ToolCall{ID: call.ID, Type: "function", FunctionCall: &llms.FunctionCall{Name: call.Tool}})
		}
	}
	return out
}

func fromContents(messages []llms.MessageContent) []conversationtest.Message {
	out := make([]conversationtest.Message, len(messages))
	for i, m := range messages {
		out[i].Role = frameworktest.RoleOf(scriptRoles, m.Role)
		for _, part := range m.Parts {
			switch p := part.(type) {
			case llms.TextContent:
				out[i].Texts = append(out[i].Texts, conversationtest.Text{Value: p.Text})
			case llms.ToolCallResponse:
				out[i].Texts = append(out[i].Texts, conversationtest.Text{Value: p.Content, Call: p.ToolCallID})
			case llms.ToolCall:
				out[i].Calls = append(out[i].Calls, conversationtest.Call{ID: p.ID, Tool: p.FunctionCall.Name})
			}
		}
	}
	return out
}
