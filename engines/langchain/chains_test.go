package langchain_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/memory"
	"github.com/tmc/langchaingo/prompts"
	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/internal/prompt/markup"
	"github.com/ragpilot/ragpilot/retriever"
)

// From its second turn on the chain asks the model to rephrase the question before it retrieves. Only the request
// with documents is a planned one, and since no earlier document is resent, none may be referred to.
func TestConversationalChain(t *testing.T) {
	pilot, inner := newPilot(t, contextpilot.Config{}), &recorder{}
	var plans []string
	r := retriever.Wrap(pilot, machines(), retriever.WithPlans(func(p contextpilot.Plan) { plans = append(plans, p.RequestID) }))
	inner.do = func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) {
		return answer("How do pump and valve differ?", nil), nil
	}
	qa := chains.NewConversationalRetrievalQAFromLLM(langchain.Wrap(pilot, inner), r, memory.NewConversationBuffer())
	for _, question := range []string{"Compare pump and valve", "And the other way round?", "And now?"} {
		if _, err := chains.Run(in("thread"), qa, question); err != nil {
			t.Fatal(err)
		}
	}
	if len(inner.calls) != 5 || len(plans) != 3 {
		t.Fatalf("%d requests, %d plans, want 1 + 2 + 2 requests and 3 plans", len(inner.calls), len(plans))
	}
	for i, want := range []string{plans[0], "", plans[1], "", plans[2]} {
		call := inner.calls[i]
		if call.id != want {
			t.Errorf("request %d has ID %q, want %q", i+1, call.id, want)
		}
		text := textOf(call.messages[0])
		if blocks := strings.Count(text, "<doc "); (want == "") != (blocks == 0) || blocks != 0 && blocks != 2 {
			t.Errorf("request %d has %d blocks", i+1, blocks)
		}
		if strings.Contains(text, "previous conversation") {
			t.Errorf("request %d refers to what is not in it:\n%s", i+1, text)
		}
	}
	if st := pilot.Stats(); st.BlocksRef != 0 || st.LiveRequests != 3 || st.EventsUnknown != 0 || framework.OffersOf(pilot).Stats().Held != 0 {
		t.Errorf("%+v", st)
	}
}

func TestRetrievalChainAfterAReorderedRetrieval(t *testing.T) {
	pilot, inner := newPilot(t, contextpilot.Config{}), &recorder{}
	found := literal{}
	for _, name := range []string{"pump", "valve", "motor"} {
		found = append(found, machines()[name])
	}
	qa := chains.NewRetrievalQAFromLLM(langchain.Wrap(pilot, inner), retriever.Wrap(pilot, &found))
	qa.ReturnSourceDocuments = true
	var head string
	for i, order := range [][]int{{0, 1, 2}, {2, 0, 1}, {1, 2, 0}, {2, 1, 0}} {
		all := machines()
		for j, k := range order {
			found[j] = all[[]string{"pump", "valve", "motor"}[k]]
		}
		out, err := chains.Call(context.Background(), qa, map[string]any{"query": "Why?"})
		if err != nil {
			t.Fatal(err)
		}
		text := textOf(inner.last().messages[0])
		if i == 0 {
			head = text[:strings.LastIndex(text, "</doc>")]
		}
		if !strings.HasPrefix(text, head) {
			t.Errorf("order %v gives\n%s\nwant\n%s", order, text, head)
		}
		for j, d := range retriever.Sources(out["source_documents"].([]schema.Document)) {
			if d.PageContent != found[j].PageContent {
				t.Errorf("order %v: source %d is %q", order, j, d.PageContent)
			}
		}
	}
}

// literal finds the same documents for every question.
type literal []schema.Document

func (l *literal) GetRelevantDocuments(context.Context, string) ([]schema.Document, error) {
	return *l, nil
}

// Chains that send the documents one by one, and what became of each: every request is one of its own, and that of all of them was none.
// No note names what is not in the same prompt.
func TestChainsWithOneDocumentARequest(t *testing.T) {
	rerank := func(m llms.Model) chains.Chain {
		prompt := prompts.NewPromptTemplate("Answer and score.\n{{.context}}\n{{.question}}", []string{"context", "question"})
		return chains.NewMapRerankDocuments(chains.NewLLMChain(m, prompt))
	}
	for _, chain := range []struct {
		name  string
		make  func(llms.Model) chains.Chain
		other int // requests without a document
	}{
		{"refine", func(m llms.Model) chains.Chain { return chains.LoadRefineQA(m) }, 0},
		{"map reduce", func(m llms.Model) chains.Chain { return chains.LoadMapReduceQA(m) }, 1},
		{"map rerank", rerank, 0},
	} {
		for _, session := range []string{"s", ""} {
			t.Run(chain.name+"/"+session, func(t *testing.T) {
				pilot, inner := newPilot(t, contextpilot.Config{Policy: "sorted"}), &recorder{}
				inner.do = func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) {
					return answer("Both are checked.\nScore: 50", nil), nil
				}
				qa := chains.NewRetrievalQA(chain.make(langchain.Wrap(pilot, inner)), retriever.Wrap(pilot, machines()))
				qa.InputKey = "question" // what the prompts of the chains call it
				const question = "Compare valve, pump and motor"
				for run := range 2 {
					inner.calls = nil
					if _, err := chains.Call(in(session), qa, map[string]any{"question": question}); err != nil {
						t.Fatal(err)
					}
					seen, ids := map[string]bool{}, map[string]bool{}
					for i, call := range inner.calls {
						text := textOf(call.messages[0])
						checkNotes(t, text)
						labels := labelsOf(text)
						if len(labels) == 0 {
							if call.id != "" {
								t.Errorf("request %d without a document is tied to %q", i+1, call.id)
							}
							continue
						}
						if len(labels) != 1 || call.id == "" || seen[labels[0]] || ids[call.id] {
							t.Errorf("request %d is tied to %q and has %q", i+1, call.id, labels)
						}
						seen[labels[0]], ids[call.id] = true, true
					}
					if len(seen) != 3 || len(inner.calls) != 3+chain.other {
						t.Errorf("%d requests with %d documents", len(inner.calls), len(seen))
					}
					n := int64(3 * (run + 1))
					if st := pilot.Stats(); st.Plans != n || st.BlocksSent != n || st.LiveRequests != n || st.Reordered != 0 ||
						framework.OffersOf(pilot).Stats().Held != 0 || framework.OffersOf(pilot).Stats().Unclaimed != 0 || st.EventsUnknown != 0 {
						t.Errorf("%+v", st)
					}
				}
			})
		}
	}
}

// A chain that sends all documents in one prompt has the order note there; one that sends some of them has none.
func TestOrderNoteOfChains(t *testing.T) {
	const question = "Compare valve, pump and motor"
	for _, test := range []struct {
		name  string
		make  func(r schema.Retriever) schema.Retriever
		notes int
		order []string
	}{
		{"all", func(r schema.Retriever) schema.Retriever { return r }, 1, []string{"motor", "pump", "valve"}},
		{"some", func(r schema.Retriever) schema.Retriever { return but{r, 1} }, 0, []string{"motor", "valve"}},
	} {
		pilot, inner := newPilot(t, contextpilot.Config{Policy: "sorted"}), &recorder{}
		qa := chains.NewRetrievalQAFromLLM(langchain.Wrap(pilot, inner), test.make(retriever.Wrap(pilot, machines())))
		if _, err := chains.Run(in("s"), qa, question); err != nil {
			t.Fatal(err)
		}
		text := textOf(inner.last().messages[0])
		checkNotes(t, text)
		if n := strings.Count(text, "priority order"); n != test.notes || !slices.Equal(labelsOf(text), test.order) {
			t.Errorf("%s: %d notes in\n%s", test.name, n, text)
		}
		if st := pilot.Stats(); st.Plans != 1 || st.LiveRequests != 1 || st.BlocksSent != int64(len(test.order)) || inner.last().id == "" {
			t.Errorf("%s: request %q, %+v", test.name, inner.last().id, st)
		}
	}
}

// but leaves out one of the documents of a retriever, as a filter behind it does.
type but struct {
	schema.Retriever
	i int
}

func (b but) GetRelevantDocuments(ctx context.Context, query string) ([]schema.Document, error) {
	docs, err := b.Retriever.GetRelevantDocuments(ctx, query)
	return slices.Delete(docs, b.i, b.i+1), err
}

// The chain's own history is in none of its prompts with documents: these stand at the front. A program that sends its history gets
// the retriever's order.
func TestConversationalChainHasNotesAtTheFrontOnly(t *testing.T) {
	pilot, inner := newPilot(t, contextpilot.Config{Policy: "sorted"}), &recorder{}
	inner.do = func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) {
		return answer("How do valve and pump differ?", nil), nil
	}
	qa := chains.NewConversationalRetrievalQAFromLLM(langchain.Wrap(pilot, inner), retriever.Wrap(pilot, machines()),
		memory.NewConversationBuffer())
	behind := chains.NewConversationalRetrievalQA(
		chains.LoadStuffQA(talk{langchain.Wrap(pilot, inner)}), chains.LoadCondenseQuestionGenerator(inner), retriever.Wrap(pilot,
			machines()), memory.NewConversationBuffer())
	for range 3 {
		for name, chain := range map[string]chains.Chain{"front": qa, "behind": behind} {
			if _, err := chains.Run(in(name), chain, "Compare valve and pump"); err != nil {
				t.Fatal(err)
			}
			text := textOf(inner.last().messages[len(inner.last().messages)-1])
			checkNotes(t, text)
			notes, order := 1, []string{"pump", "valve"}
			if name == "behind" {
				notes, order = 0, []string{"valve", "pump"}
			}
			if n := strings.Count(text, "priority order"); n != notes || !slices.Equal(labelsOf(text), order) {
				t.Errorf("%s: %d notes in\n%s", name, n, text)
			}
		}
	}
	if st := pilot.Stats(); st.LiveRequests != 6 || st.Plans != 6 || framework.OffersOf(pilot).Stats().Held != 0 ||
		framework.OffersOf(pilot).Stats().Unclaimed != 0 || st.EventsUnknown != 0 {
		t.Errorf("%+v", st)
	}
}

// talk puts messages in front of all that is asked.
type talk struct{ llms.Model }

func (m talk) GenerateContent(ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse,
	error,
) {
	return m.Model.GenerateContent(ctx, append([]llms.MessageContent{human("Hello."), ai("Hello, too.")}, messages...), options...)
}

// labelsOf returns the labels of the blocks in a prompt.
func labelsOf(text string) (labels []string) {
	for r := range markup.Regions(text) {
		labels = append(labels, r.Label)
	}
	return labels
}

// checkNotes checks that an order note names only what stands in the same prompt.
func checkNotes(t tb, text string) {
	t.Helper()
	for _, note := range regexp.MustCompile(`priority order: ([^\n]*) and answer`).FindAllStringSubmatch(text, -1) {
		for name := range strings.SplitSeq(note[1], " > ") {
			if !slices.Contains(labelsOf(text), strings.Trim(name, "[]")) {
				t.Errorf("a note names %s, which is not there:\n%s", name, text)
			}
		}
	}
}

func TestFailedChainIsTakenBack(t *testing.T) {
	broken := errors.New("broken")
	pilot := newPilot(t, contextpilot.Config{})
	inner := &recorder{do: func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) { return nil, broken }}
	qa := chains.NewRetrievalQAFromLLM(langchain.Wrap(pilot, inner), retriever.Wrap(pilot, machines()))
	_, err := chains.Run(in("s"), qa, "Compare pump and valve")
	if !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if st := pilot.Stats(); st.LiveRequests != 0 || framework.OffersOf(pilot).Stats().Held != 0 || st.EventsUnknown != 0 {
		t.Errorf("%+v", st)
	}
}

// Conversations share one retriever and one model. Each finds its own plan, also where several ask for the same
// documents at the same time.
func TestConcurrentConversations(t *testing.T) {
	pilot, inner := newPilot(t, contextpilot.Config{}), &recorder{}
	var mu sync.Mutex
	owner := map[string]string{} // request → session
	r := retriever.Wrap(pilot, machines(), retriever.WithPlans(func(p contextpilot.Plan) {
		mu.Lock()
		defer mu.Unlock()
		owner[p.RequestID] = p.Session
	}))
	inner.do = func(ctx context.Context, _ llms.CallOptions) (*llms.ContentResponse, error) {
		mu.Lock()
		defer mu.Unlock()
		if id, session := langchain.RequestID(ctx), framework.ConversationFrom(ctx); owner[id] != session {
			t.Errorf("conversation %q got the plan %q of %q", session, id, owner[id])
		} else {
			delete(owner, id)
		}
		return answer("Yes.", nil), nil
	}
	qa := chains.NewRetrievalQAFromLLM(langchain.Wrap(pilot, inner), r)
	var wg sync.WaitGroup
	const conversations, turns = 8, 20
	for i := range conversations {
		wg.Go(func() {
			ctx := in(fmt.Sprintf("thread-%d", i))
			for turn := range turns {
				question := []string{"pump valve", "valve motor pump", "motor"}[turn%3]
				if _, err := chains.Run(ctx, qa, question); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if len(inner.calls) != conversations*turns || len(owner) != 0 {
		t.Errorf("%d requests, %d plans were not sent", len(inner.calls), len(owner))
	}
	if st := pilot.Stats(); st.LiveRequests != conversations*turns || framework.OffersOf(pilot).Stats().Held != 0 || st.BlocksRef != 0 ||
		st.Faults() != 0 {
		t.Errorf("%+v", st)
	}
}

// Chats that resend their history run at the same time; what one shows is never referred to by another.
func TestConcurrentChats(t *testing.T) {
	pilot := newPilot(t, contextpilot.Config{})
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			inner := &recorder{}
			c := newChat(t, fmt.Sprintf("chat-%d", i), pilot, inner)
			for _, q := range []string{"pump and valve", "motor, pump?", "valve, motor", "all: pump valve motor"} {
				c.ask(q)
				checkReferences(t, inner.last().messages)
			}
		})
	}
	wg.Wait()
}
