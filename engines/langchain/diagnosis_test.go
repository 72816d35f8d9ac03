package langchain_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/prefixdiff"
)

// missed collects findings.
type missed []prefixdiff.Finding

func (m *missed) add(_ context.Context, f prefixdiff.Finding) { *m = append(*m, f) }

func (m *missed) take() string {
	var out []string
	for _, f := range *m {
		out = append(out, fmt.Sprint(f.Cause, " at ", f.Path))
	}
	*m = nil
	return strings.Join(out, ", ")
}

// TestDiagnosis: a call is compared with earlier ones as it was sent, with its tools, unless it failed or its answer says that all was in
// the cache.
func TestDiagnosis(t *testing.T) {
	index, err := prefixdiff.New(prefixdiff.Config{})
	if err != nil {
		t.Fatal(err)
	}
	inner, found := new(recorder), new(missed)
	m := langchain.Wrap(newPilot(t, contextpilot.Config{}), inner, langchain.WithDiagnosis(index, found.add))
	manual := strings.Repeat("Answer from the manual alone, and name the page that you have it from. ", 20)
	tool := func(name string) llms.Tool {
		return llms.Tool{Type: "function", Function: &llms.FunctionDefinition{
			Name: name, Description: strings.Repeat("Looks "+name+" up in all that there is. ", 10), Parameters: map[string]any{"type": "object"},
		}}
	}
	ask := func(minute int, tools []llms.Tool, more ...llms.MessageContent) {
		_, _ = m.GenerateContent(t.Context(), append([]llms.MessageContent{
			llms.TextParts(llms.ChatMessageTypeSystem, fmt.Sprintf("It is 2026-05-04 10:%02d. %s", minute, manual)),
			llms.TextParts(llms.ChatMessageTypeHuman, "Who wrote it?"),
		}, more...), llms.WithTools(tools))
	}
	called := []llms.MessageContent{
		{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{
			&llms.ToolCall{ID: "call-1", Type: "function", FunctionCall: &llms.FunctionCall{Name: "red", Arguments: `{"page":7}`}},
		}},
		{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{
			llms.ToolCallResponse{ToolCallID: "call-1", Name: "red", Content: strings.Repeat("It was written by hand. ", 20)},
		}},
	}
	ask(1, nil)
	ask(1, nil, called...) // goes on
	if got := found.take(); got != "" {
		t.Errorf("%q", got)
	}
	ask(2, nil)
	if got := found.take(); got != "clock at messages[0].content[0].text" {
		t.Errorf("%q", got)
	}
	inner.do = func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) { return nil, errors.New("busy") }
	ask(30, []llms.Tool{tool("red"), tool("green")})
	inner.do = nil
	ask(2, []llms.Tool{tool("green"), tool("red")})
	found.take()
	ask(2, []llms.Tool{tool("red"), tool("green")})
	if got := found.take(); !strings.HasPrefix(got, "tool-order at tools[0]") {
		t.Errorf("%q", got)
	}
	edited := []llms.MessageContent{called[0], {Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{
		llms.ToolCallResponse{ToolCallID: "call-1", Name: "red", Content: "It was written."},
	}}, llms.TextParts(llms.ChatMessageTypeAI, "By hand."), llms.TextParts(llms.ChatMessageTypeHuman, "Sure?")}
	ask(1, nil, append([]llms.MessageContent{called[0], called[1]}, edited[2:]...)...)
	found.take()
	ask(1, nil, edited...)
	if got := found.take(); got != "edited-history at messages[3].content[0].text" {
		t.Errorf("%q", got)
	}
	for _, c := range []struct {
		cached int
		want   string
	}{{0, "clock"}, {10, "clock"}, {390, ""}} {
		inner.do = func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) {
			return answer("yes", map[string]any{"PromptTokens": 400, "PromptCachedTokens": c.cached}), nil
		}
		ask(40+c.cached, nil)
		if got := found.take(); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%d cached: %q", c.cached, got)
		}
	}
}

// TestDiagnosisOfAPlan: a call with a plan is compared as its messages were sent.
func TestDiagnosisOfAPlan(t *testing.T) {
	index, err := prefixdiff.New(prefixdiff.Config{})
	if err != nil {
		t.Fatal(err)
	}
	found := new(missed)
	p := newPilot(t, contextpilot.Config{})
	m := langchain.Wrap(p, new(recorder), langchain.WithDiagnosis(index, found.add), langchain.WithDiagnosis(nil, nil))
	manual := strings.Repeat("Answer from the manual alone, and name the page that you have it from. ", 20)
	for i := range 2 {
		_, docs := hold(p, "", "red", "green", "blue")
		generate(t.Context(), t, m, []llms.MessageContent{
			llms.TextParts(llms.ChatMessageTypeSystem, fmt.Sprintf("It is 10:0%d. %s", i, manual)), human(docs + "\n\nWhy?"),
		})
	}
	if st := p.Stats(); st.LiveRequests == 0 || framework.OffersOf(p).Stats().Held != 0 {
		t.Errorf("no call had a plan: %+v", st)
	}
	if got := found.take(); got != "clock at messages[0].content[0].text" {
		t.Errorf("%q", got)
	}
}
