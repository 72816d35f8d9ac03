package framework_test

import (
	"context"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/conversation/conversationtest"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/framework/frameworktest"
)

// A program without a framework of its own keeps its messages and asks Calls what to send.
func TestScript(t *testing.T) {
	frameworktest.Run(t, "plain program", func(pilot *contextpilot.Pilot, scope contextpilot.Scope, replace bool) frameworktest.Ask {
		turns := framework.NewCalls(pilot, framework.Options{Scope: &scope, ToolResults: replace})
		return func(ctx context.Context, messages []conversationtest.Message) error {
			mine := toMessages(messages)
			call := turns.Begin(framework.ConversationFrom(ctx), mine)
			err := frameworktest.Arrive(ctx, fromMessages(framework.Apply(mine, call.Replacements)))
			call.End(framework.Outcome(err == nil, 0, 0))
			return err
		}
	})
}

var scriptRoles = map[conversationtest.Role]conversation.Role{
	conversationtest.System: conversation.System, conversationtest.User: conversation.User,
	conversationtest.Assistant: conversation.Assistant, conversationtest.Tool: conversation.Tool,
}

func toMessages(messages []conversationtest.Message) []framework.Message {
	out := make([]framework.Message, len(messages))
	for i, m := range messages {
		out[i].Role = scriptRoles[m.Role]
		for _, text := range m.Texts {
			out[i].Texts = append(out[i].Texts, conversation.Text{Value: text.Value, Call: text.Call})
		}
		for _, call := range m.Calls {
			out[i].Calls = append(out[i].Calls, conversation.Call{ID: call.ID, Tool: call.Tool})
		}
	}
	return out
}

func fromMessages(messages []framework.Message) []conversationtest.Message {
	out := make([]conversationtest.Message, len(messages))
	for i, m := range messages {
		out[i].Role = frameworktest.RoleOf(scriptRoles, m.Role)
		for _, text := range m.Texts {
			out[i].Texts = append(out[i].Texts, conversationtest.Text{Value: text.Value, Call: text.Call})
		}
		for _, call := range m.Calls {
			out[i].Calls = append(out[i].Calls, conversationtest.Call{ID: call.ID, Tool: call.Tool})
		}
	}
	return out
}
