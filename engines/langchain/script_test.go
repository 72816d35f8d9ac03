package langchain_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation/conversationtest"
	"github.com/ragpilot/ragpilot/engines/langchain"
)

// today is what the script wants and the wrapper does not do yet.
var today = conversationtest.Today{
	// Tools' results are not read.
	"#5 M": "full", "#8 rows of F": "as it came", "#9 F": "as it came", "#10 G": "full", "#10 M": "full", "#10 S": "full",
	"#12 copied note": "0 fenced", "#13 J": "full", "#1 and #2 cut: #5 M": "full", "invariant 7: no forged notes": "does not hold",
	// References need what is remembered of the conversation, by its name.
	"restart without: same references": "does not hold", "no name: same edits": "does not hold",
}

func TestScript(t *testing.T) {
	conversationtest.Run(t, func(t testing.TB) conversationtest.Frontend { return newChain(t) }, today)
}

// chain is a program that retrieves documents and calls a wrapped model, a named fake.
type chain struct {
	t      testing.TB
	client conversationtest.Client
	model  llms.Model

	*process
}

// process is what clients share.
type process struct {
	pilot *contextpilot.Pilot
	inner *arrivals
}

func newChain(t testing.TB) *chain {
	c := &chain{t: t, process: &process{inner: &arrivals{}}}
	c.Restart(false)
	return c
}

func (c *chain) Name() string { return "langchaingo" }

func (c *chain) Skips(cell string) string {
	switch {
	case strings.HasPrefix(cell, "restart with orders"):
		return "there is no store of orders"
	case strings.HasPrefix(cell, "cache marks"):
		return "there are no cache marks"
	case strings.HasPrefix(cell, string(conversationtest.Off)), strings.HasPrefix(cell, string(conversationtest.HeldOut)), strings.HasPrefix(cell, string(conversationtest.Shadow)):
		return "a setting of the sidecar"
	}
	return ""
}

func (c *chain) Restart(bool) {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		c.t.Fatal(err)
	}
	c.pilot = pilot
	c.model = langchain.Wrap(c.pilot, c.inner)
}

func (c *chain) FailNext() { c.inner.fail = true }

func (c *chain) As(client conversationtest.Client) conversationtest.Frontend {
	out := *c
	out.client = client
	out.model = langchain.Wrap(c.pilot, c.inner, langchain.WithScope(out.scope()))
	return &out
}

func (c *chain) scope() contextpilot.Scope {
	return contextpilot.Scope{Tenant: c.client.Tenant, Model: c.client.Model}
}

// session is the name of the conversation, which is another one for each client.
func (c *chain) session() string {
	if c.client.Unnamed {
		return ""
	}
	return "script" + c.client.Tenant + c.client.Model
}

// Retrieve plans as the wrapper of a retriever does.
func (c *chain) Retrieve(docs []conversationtest.Document) string {
	req := contextpilot.Request{Scope: c.scope()}
	for _, d := range docs {
		req.Blocks = append(req.Blocks, contextpilot.Block{ID: d.Label, Text: d.Text})
	}
	plan := c.pilot.Plan(req)
	plan.Session = c.session()
	c.pilot.Hold(plan)
	var b strings.Builder
	for i := range plan.Items {
		b.WriteString(plan.RenderItem(i))
	}
	if hint := plan.Hint(); hint != "" {
		b.WriteString(hint + "\n")
	}
	return b.String()
}

func (c *chain) Send(messages []conversationtest.Message) ([]conversationtest.Message, error) {
	ctx := c.t.Context()
	if name := c.session(); name != "" {
		ctx = contextpilot.WithConversation(ctx, name)
	}
	var arrived []llms.MessageContent
	_, err := c.model.GenerateContent(context.WithValue(ctx, arrivedKey{}, &arrived), toContents(messages))
	if err != nil {
		return nil, err
	}
	return fromContents(arrived), nil
}

// arrivals is a model that gives the caller what arrived, a named fake.
type arrivals struct{ fail bool }

type arrivedKey struct{}

func (a *arrivals) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, a, prompt, options...)
}

func (a *arrivals) GenerateContent(ctx context.Context, messages []llms.MessageContent, _ ...llms.CallOption) (*llms.ContentResponse, error) {
	if a.fail {
		a.fail = false
		return nil, errors.New("the model is not there")
	}
	*ctx.Value(arrivedKey{}).(*[]llms.MessageContent) = messages
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
		for role, name := range scriptRoles {
			if name == m.Role {
				out[i].Role = role
			}
		}
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
