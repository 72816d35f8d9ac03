package adk_test

import (
	"context"
	"iter"
	"testing"

	"google.golang.org/adk/model"
	"google.golang.org/genai"

	"github.com/ragpilot/ragpilot/adapters/adk"
	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation/conversationtest"
	"github.com/ragpilot/ragpilot/framework/frameworktest"
)

func TestScript(t *testing.T) {
	frameworktest.Run(t, "ADK", func(pilot *contextpilot.Pilot, scope contextpilot.Scope, replace bool) frameworktest.Ask {
		m := adk.Model(pilot, arrivals{}, adk.ModelOptions{Scope: scope, ToolResults: replace})
		return func(ctx context.Context, messages []conversationtest.Message) error {
			for _, err := range m.GenerateContent(ctx, toRequest(messages), false) {
				return err
			}
			return nil
		}
	})
}

// arrivals is a model that says what arrived, a named fake.
type arrivals struct{}

func (arrivals) Name() string { return "arrivals" }

func (arrivals) GenerateContent(ctx context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		if err := frameworktest.Arrive(ctx, fromRequest(req)); err != nil {
			yield(nil, err)
			return
		}
		yield(&model.LLMResponse{Content: genai.NewContentFromText("An answer.", genai.RoleModel)}, nil)
	}
}

func toRequest(messages []conversationtest.Message) *model.LLMRequest {
	req := &model.LLMRequest{}
	for _, m := range messages {
		text := m.Texts[0]
		content := genai.NewContentFromText(text.Value, genai.RoleUser)
		switch m.Role {
		case conversationtest.System:
			req.Config = &genai.GenerateContentConfig{SystemInstruction: content}
			continue
		case conversationtest.Assistant:
			content.Role = genai.RoleModel
		case conversationtest.Tool:
			content.Parts = []*genai.Part{{FunctionResponse: &genai.FunctionResponse{
				ID: text.Call, Name: "tool_" + text.Call,
				Response: map[string]any{"output": text.Value},
			}}}
		}
		for _, call := range m.Calls {
			content.Parts = append(content.Parts, &genai.Part{FunctionCall: &genai.FunctionCall{ID: call.ID, Name: call.Tool}})
		}
		req.Contents = append(req.Contents, content)
	}
	return req
}

func fromRequest(req *model.LLMRequest) []conversationtest.Message {
	var out []conversationtest.Message
	if req.Config != nil {
		out = append(out, conversationtest.Message{
			Role:  conversationtest.System,
			Texts: []conversationtest.Text{{Value: req.Config.SystemInstruction.Parts[0].Text}},
		})
	}
	for _, c := range req.Contents {
		m := conversationtest.Message{Role: conversationtest.User}
		if c.Role == genai.RoleModel {
			m.Role = conversationtest.Assistant
		}
		for _, part := range c.Parts {
			switch {
			case part.FunctionResponse != nil:
				m.Role = conversationtest.Tool
				m.Texts = append(m.Texts, conversationtest.Text{
					Value: part.FunctionResponse.Response["output"].(string),
					Call:  part.FunctionResponse.ID,
				})
			case part.FunctionCall != nil:
				m.Calls = append(m.Calls, conversationtest.Call{ID: part.FunctionCall.ID, Tool: part.FunctionCall.Name})
			default:
				m.Texts = append(m.Texts, conversationtest.Text{Value: part.Text})
			}
		}
		out = append(out, m)
	}
	return out
}
