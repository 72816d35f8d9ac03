package langchain_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

type exact struct{}

func (exact) Count(text string) int { return tokens.Count(text) }

// A chat that never drops a message stays within the window, refers to nothing that was cut, and gets in full again what
// has left.
func TestTrimmedChat(t *testing.T) {
	pilot, inner := newPilot(t, contextpilot.Config{Tokenizer: exact{}}), &recorder{}
	llm, err := langchain.Trim(pilot, langchain.Wrap(pilot, inner), conversation.TrimOptions{
		Window: 1200, Answer: 200, PerMessage: -1,
		Summarize: func(_ context.Context, _ string, cut []conversation.Message) (string, error) {
			return fmt.Sprintf("%d messages before.", len(cut)), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := newChat(t, "thread", pilot, inner)
	c.model = llm
	subjects := []string{"pump and valve", "valve?", "motor", "and pump and motor", "nothing", "valve and motor"}
	cut, summaries, references := 0, 0, 0
	for i := range 24 {
		c.ask(subjects[i%len(subjects)])
		sent := inner.last().messages
		n := 0
		for _, m := range sent {
			n += tokens.Count(textOf(m))
		}
		if n > 1000 {
			t.Fatalf("turn %d: %d tokens", i+1, n)
		}
		checkReferences(t, sent)
		references += strings.Count(textOf(sent[len(sent)-1]), "Please refer to")
		if len(sent) < len(c.messages)-1 {
			cut++
		}
		if strings.Contains(textOf(sent[0]), " messages before.\n\n") {
			summaries++
		}
	}
	if cut < 10 || summaries < 10 || references < 5 {
		t.Errorf("cut in %d turns, %d summaries, %d references", cut, summaries, references)
	}
}

// A step of an agent keeps its calls and results together.
func TestTrimmedTools(t *testing.T) {
	pilot, inner := newPilot(t, contextpilot.Config{Tokenizer: exact{}}), &recorder{}
	llm, err := langchain.Trim(pilot, inner, conversation.TrimOptions{Window: 600, Answer: 100, PerMessage: -1})
	if err != nil {
		t.Fatal(err)
	}
	messages := []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeSystem, "Be brief."), human("Find it.")}
	for i := range 20 {
		id := fmt.Sprint("call-", i)
		messages = append(messages,
			llms.MessageContent{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{
				llms.ToolCall{ID: id, Type: "function", FunctionCall: &llms.FunctionCall{Name: "search", Arguments: `{"query":"pump"}`}},
			}},
			llms.MessageContent{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{
				llms.ToolCallResponse{ToolCallID: id, Name: "search", Content: strings.Repeat("found ", 20)},
			}})
		generate(context.Background(), t, llm, messages)
		sent := inner.last().messages
		if textOf(sent[0]) != "Be brief." || textOf(sent[1]) != "Find it." {
			t.Fatalf("step %d begins with %q", i+1, textOf(sent[1]))
		}
		open, n := "", tokens.Count("Be brief.")+tokens.Count("Find it.")
		for _, m := range sent[2:] {
			n += 24 // of the template
			switch p := m.Parts[0].(type) {
			case llms.ToolCall:
				open = p.ID
				n += tokens.Count(p.FunctionCall.Name) + tokens.Count(p.FunctionCall.Arguments)
			case llms.ToolCallResponse:
				n += tokens.Count(p.Name) + tokens.Count(p.Content)
				if p.ToolCallID != open {
					t.Fatalf("step %d: result of %s behind call %s", i+1, p.ToolCallID, open)
				}
			}
		}
		if open != id || n > 500 {
			t.Fatalf("step %d ends with %s, and has %d tokens", i+1, open, n)
		}
	}
	if n := len(inner.last().messages); n >= len(messages) {
		t.Errorf("%d messages were sent of %d", n, len(messages))
	}
	_, err = llm.GenerateContent(context.Background(), []llms.MessageContent{human(strings.Repeat("too long ", 600))})
	if !errors.Is(err, conversation.ErrTooLong) {
		t.Error(err)
	}
	if _, err := langchain.Trim(pilot, inner, conversation.TrimOptions{}); err == nil {
		t.Error("a Trim without a window")
	}
}

// Behind a cut nothing of the old prompt is expected in the cache, also where the rest shows all blocks that the whole did.
func TestCutIsSeen(t *testing.T) {
	c, inner, plan := trimmedChat(t, 800)
	cuts, kept := 0, 0
	for i := range 20 {
		c.ask(fmt.Sprint("pump ", i, strings.Repeat(" why", 20)))
		sent := len(inner.last().messages)
		switch cut := sent < kept+2; {
		case cut:
			cuts++
			if plan.Prefix.Tokens != 0 {
				t.Errorf("turn %d: %d tokens are expected behind another beginning", i+1, plan.Prefix.Tokens)
			}
		case i > 0 && plan.Prefix.Tokens == 0:
			t.Errorf("turn %d: nothing is expected, but the prompt goes on from the last one", i+1)
		}
		kept = sent
	}
	if cuts < 2 {
		t.Errorf("%d cuts", cuts)
	}
}

// What tools have returned counts in what is expected to be cached behind a cut.
func TestCutBehindResults(t *testing.T) {
	c, inner, plan := trimmedChat(t, 1000)
	checked := 0
	kept, stands := 0, 0 // messages that were sent last, and tokens of them behind which the next turn goes on
	for i := range 20 {
		id := fmt.Sprint("call-", i)
		c.messages = append(c.messages,
			llms.MessageContent{
				Role:  llms.ChatMessageTypeAI,
				Parts: []llms.ContentPart{llms.ToolCall{ID: id, FunctionCall: &llms.FunctionCall{Name: "search"}}},
			},
			llms.MessageContent{
				Role:  llms.ChatMessageTypeTool,
				Parts: []llms.ContentPart{llms.ToolCallResponse{ToolCallID: id, Content: strings.Repeat("found ", 60)}},
			})
		c.ask(fmt.Sprint("pump? ", i))
		sent := inner.last().messages
		if cut := len(sent) < kept+4; !cut && stands > 0 {
			checked++
			if plan.Prefix.Tokens < stands {
				t.Errorf("turn %d: %d tokens are expected, but %d stood in front of the last question", i+1, plan.Prefix.Tokens, stands)
			}
			stands = 0
		} else if cut {
			stands = tokens.Count(said(sent[:len(sent)-1]))
		}
		kept = len(sent)
	}
	if checked < 2 {
		t.Errorf("%d cuts were looked at", checked)
	}
}

// trimmedChat is a conversation within a window; plan is that of the latest request.
func trimmedChat(t *testing.T, window int) (c *chat, inner *recorder, plan *contextpilot.Plan) {
	t.Helper()
	pilot := newPilot(t, contextpilot.Config{Tokenizer: exact{}})
	inner, plan = &recorder{}, new(contextpilot.Plan)
	wrapped := langchain.Wrap(pilot, inner, langchain.WithPlans(func(p contextpilot.Plan) { *plan = p }))
	llm, err := langchain.Trim(pilot, wrapped, conversation.TrimOptions{Window: window, Answer: 100, PerMessage: -1})
	if err != nil {
		t.Fatal(err)
	}
	c = newChat(t, "thread", pilot, inner)
	c.model = llm
	return c, inner, plan
}
