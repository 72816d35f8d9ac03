package langchain_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/retriever"
)

// The retriever plans and the model plans again: the counters are those of the prompts that were sent, in a conversation, in
// one whose history shows the blocks, and where the model has another cache than the retriever knows of.
func TestBothWrappersCountWhatIsSent(t *testing.T) {
	other := contextpilot.Scope{Replica: "other"}
	for name, options := range map[string][]langchain.Option{"one scope": nil, "moved": {langchain.WithScope(other)}} {
		for _, session := range []string{"", "s"} {
			for _, resent := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/session=%q/resent=%v", name, session, resent), func(t *testing.T) {
					pilot, inner := newPilot(t, contextpilot.Config{}), &recorder{}
					c := newChat(t, session, pilot, inner)
					c.model = langchain.Wrap(pilot, inner, options...)
					var blocks, refs int64
					for i := range 8 {
						c.ask([]string{"pump, valve and motor?", "motor and pump?", "valve and pump?"}[i%3])
						sent := inner.last().messages
						text := textOf(sent[len(sent)-1])
						blocks += int64(strings.Count(text, "<doc "))
						refs += int64(strings.Count(text, "refer to ["))
						if !resent {
							c.messages = nil
						}
					}
					st := pilot.Stats()
					got := []int64{
						st.Plans, st.BlocksSent, st.BlocksRef, st.LiveRequests, framework.OffersOf(pilot).Stats().Held,
						framework.OffersOf(pilot).Stats().Unclaimed,
					}
					if want := []int64{8, blocks, refs, 8, 0, 0}; fmt.Sprint(got) != fmt.Sprint(want) {
						t.Errorf("plans, blocks, references, live, held, unclaimed: %d, want %d", got, want)
					}
					if (refs > 0) != resent || blocks == 0 {
						t.Errorf("%d blocks and %d references were sent", blocks, refs)
					}
				})
			}
		}
	}
}

// A chain without a conversation sends what the retriever has planned.
func TestChainCountsWhatIsSent(t *testing.T) {
	pilot, inner := newPilot(t, contextpilot.Config{}), &recorder{}
	qa := chains.NewRetrievalQAFromLLM(langchain.Wrap(pilot, inner), retriever.Wrap(pilot, machines()))
	for range 8 {
		if _, err := chains.Run(t.Context(), qa, "Compare pump, motor and valve"); err != nil {
			t.Fatal(err)
		}
	}
	if st := pilot.Stats(); st.Plans != 8 || st.BlocksSent != 24 || st.LiveRequests != 8 {
		t.Errorf("%+v", st)
	}
}

// A retriever that is asked ten times, while the model is not called, leaves nothing in the index after ten minutes. Without
// a wrapped model its documents are what is sent: they stay, and so they do with WithoutHold.
func TestModelThatIsNeverCalled(t *testing.T) {
	for _, test := range []struct {
		name    string
		model   bool
		options []retriever.Option
		left    int64
	}{
		{"model", true, nil, 0},
		{"no model", false, nil, 10},
		{"not held", true, []retriever.Option{retriever.WithoutHold()}, 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pilot := newPilot(t, contextpilot.Config{})
				offers := framework.OffersOf(pilot)
				if test.model {
					langchain.Wrap(pilot, &recorder{})
				}
				r := retriever.Wrap(pilot, machines(), test.options...)
				for range 10 {
					if _, err := r.GetRelevantDocuments(in("s"), "pump and valve"); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(10 * time.Minute)
				offers.Stats()
				if st := pilot.Stats(); st.LiveRequests != test.left || st.Plans != test.left || st.BlocksSent != 2*test.left {
					t.Errorf("%+v, want %d plans", st, test.left)
				}
			})
		})
	}
}

// An agent gives documents to its model as the result of a tool: the prompt is not the one that was planned, and with the call
// the plan is gone from the index.
func TestToolResultsAreNotPlanned(t *testing.T) {
	pilot, inner := newPilot(t, contextpilot.Config{}), &recorder{}
	c := newChat(t, "s", pilot, inner)
	messages := []llms.MessageContent{human("What is checked?")}
	for _, query := range []string{"pump and valve", "valve and motor", "motor and pump"} {
		messages = append(messages, llms.MessageContent{
			Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{llms.ToolCallResponse{Content: c.find(query)}},
		})
		generate(c.ctx, t, c.model, messages)
	}
	if st := pilot.Stats(); st.LiveRequests != 0 || st.Plans != 0 || framework.OffersOf(pilot).Stats().Unclaimed != 2 ||
		framework.OffersOf(pilot).Stats().Held != 1 {
		t.Errorf("%d live, %d unclaimed, %d held, want the last one held, and none in the index", st.LiveRequests,
			framework.OffersOf(pilot).Stats().Unclaimed, framework.OffersOf(pilot).Stats().Held)
	}
}
