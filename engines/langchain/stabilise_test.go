package langchain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/prefixdiff"
	"github.com/ragpilot/ragpilot/stabilise"
)

// heard is a fake model that keeps what it gets.
type heard struct {
	messages []llms.MessageContent
	options  llms.CallOptions
}

func (h *heard) Call(context.Context, string, ...llms.CallOption) (string, error) { return "", nil }

func (h *heard) GenerateContent(_ context.Context, m []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	h.messages, h.options = m, llms.CallOptions{}
	for _, o := range options {
		o(&h.options)
	}
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: "yes"}}}, nil
}

func (h *heard) said() (out []string) {
	for _, m := range h.messages {
		text := string(m.Role) + ":"
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llms.TextContent:
				text += " " + p.Text
			case llms.ToolCallResponse:
				text += " " + p.Content
			}
		}
		out = append(out, text)
	}
	return out
}

func TestStabiliser(t *testing.T) {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := stabilise.New(stabilise.Config{Rules: stabilise.Rules{Tools: true, Schemas: true, Volatile: true, Memories: true}})
	if err != nil {
		t.Fatal(err)
	}
	index, err := prefixdiff.New(prefixdiff.Config{})
	if err != nil {
		t.Fatal(err)
	}
	inner := &heard{}
	model := langchain.Wrap(pilot, inner, langchain.WithStabiliser(s),
		langchain.WithDiagnosis(index, func(context.Context, prefixdiff.Finding) {}))
	ctx := framework.WithConversation(t.Context(), "thread")
	tool := func(name string, parameters any) llms.Tool {
		return llms.Tool{Type: "function", Function: &llms.FunctionDefinition{Name: name, Parameters: parameters}}
	}
	call := func(tools []llms.Tool, messages ...llms.MessageContent) {
		t.Helper()
		before := fmt.Sprint(messages, tools)
		if _, err := model.GenerateContent(ctx, messages, llms.WithTools(tools)); err != nil {
			t.Fatal(err)
		}
		if after := fmt.Sprint(messages, tools); after != before {
			t.Errorf("the caller's messages were changed: %s", after)
		}
	}
	want := func(want ...string) {
		t.Helper()
		if got := inner.said(); !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	system := func(clock string) llms.MessageContent {
		return llms.TextParts(llms.ChatMessageTypeSystem, "Be brief.", "Current time: "+clock)
	}
	hi := llms.TextParts(llms.ChatMessageTypeHuman, "hi")
	required := map[string]any{"type": "object", "required": []string{"y", "x"}}
	call([]llms.Tool{tool("b", required), tool("a", json.RawMessage(`{"type":"object","a":1}`))}, system("04:14:05"), hi)
	want("system: Be brief.", "human: hi [from the system text: Current time: 04:14:05]")
	text, _ := json.Marshal(inner.options.Tools)
	if got, want := string(text), `[{"type":"function","function":{"name":"a","description":"","parameters":{"a":1,"type":"object"}}},`+
		`{"type":"function","function":{"name":"b","description":"","parameters":{"required":["x","y"],"type":"object"}}}]`; got != want {
		t.Errorf("tools: %s, want %s", got, want)
	}
	if done := s.Stats(); done.Tools != 1 || done.Schemas != 1 {
		t.Errorf("%+v: a call counts once, however often its options are read", done)
	}
	answer := llms.ToolCallResponse{Content: "[from the system text: x]"}
	result := llms.MessageContent{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{answer}}
	call([]llms.Tool{tool("0", nil), tool("b", nil), tool("a", nil)}, system("04:14:09"), hi,
		llms.MessageContent{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{llms.ToolCall{ID: "c"}}}, result)
	want("system: Be brief.", "human: hi [from the system text: Current time: 04:14:05]", "ai:",
		"tool: [from (quoted) the system text: x]", "human: [from the system text: Current time: 04:14:09]")
	names := ""
	for _, tool := range inner.options.Tools {
		names += tool.Function.Name
	}
	if names != "ab0" {
		t.Errorf("tools in the order %s", names)
	}
}

// A plan is found behind a system message from which the time has gone, also when it was asked for again.
func TestStabiliserWithPlan(t *testing.T) {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := stabilise.New(stabilise.Config{Rules: stabilise.Rules{Volatile: true}})
	if err != nil {
		t.Fatal(err)
	}
	inner, planned := &heard{}, 0
	model := langchain.Wrap(pilot, inner, langchain.WithStabiliser(s), langchain.WithPlans(func(contextpilot.Plan) { planned++ }))
	ctx := framework.WithConversation(t.Context(), "thread")
	var history []llms.MessageContent
	for turn := range 3 {
		blocks := []contextpilot.Block{{ID: "a", Text: "Text of a."}, {ID: fmt.Sprint(turn), Text: fmt.Sprint("Text of ", turn)}}
		plan := pilot.Plan(contextpilot.Request{Query: "q", Blocks: blocks})
		plan.Session = "thread"
		framework.OffersOf(pilot).Offer(plan)
		history = append(history, llms.TextParts(llms.ChatMessageTypeHuman, plan.Context()+fmt.Sprint("question ", turn)))
		clock := fmt.Sprintf("Current time: 04:0%d", turn)
		before := inner.said()
		messages := append([]llms.MessageContent{llms.TextParts(llms.ChatMessageTypeSystem, "A\n"+clock)}, history...)
		if _, err := model.GenerateContent(ctx, messages); err != nil {
			t.Fatal(err)
		}
		got := inner.said()
		if len(got) < len(before) || !slices.Equal(got[:len(before)], before) {
			t.Errorf("turn %d: earlier messages changed:\n%q\n%q", turn, before, got)
		}
		if !strings.HasSuffix(got[len(got)-1], "[from the system text: "+clock+"]") || got[0] != "system: A\n" {
			t.Errorf("turn %d: %q", turn, got)
		}
		if turn > 0 && !strings.Contains(got[len(got)-1], "Please refer to [a]") {
			t.Errorf("turn %d: no reference in %q", turn, got[len(got)-1])
		}
		history = append(history, llms.TextParts(llms.ChatMessageTypeAI, "yes"))
	}
	if planned != 3 {
		t.Errorf("%d of 3 calls were tied to a plan", planned)
	}
}
