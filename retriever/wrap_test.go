package retriever_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/callbacks"
	"github.com/tmc/langchaingo/schema"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/retriever"
)

func TestDocumentsAreRenderedInPlanOrder(t *testing.T) {
	pilot := newPilot(t, contextpilot.Config{Policy: "sorted"})
	inner := literal{doc("b", "Beta."), doc("a", "Alpha.")}
	docs := get(context.Background(), t, retriever.Wrap(pilot, inner))
	want := []schema.Document{
		{
			PageContent: "<doc a>\nAlpha.\n</doc>",
			Metadata: map[string]any{
				"id": "a", "ragpilot.rank": 2, "ragpilot.block_id": "a", "ragpilot.label": "a", "ragpilot.text": "Alpha.",
			},
			Score: 0.5,
		},
		{
			PageContent: "<doc b>\nBeta.\n</doc>",
			Metadata: map[string]any{
				"id": "b", "ragpilot.rank": 1, "ragpilot.block_id": "b", "ragpilot.label": "b", "ragpilot.text": "Beta.",
			},
			Score: 0.5,
		},
	}
	if diff := cmp.Diff(want, docs); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(literal{doc("b", "Beta."), doc("a", "Alpha.")}, inner); diff != "" {
		t.Errorf("the inner documents were changed: %s", diff)
	}
	if held := framework.OffersOf(pilot).Stats().Held; held != 1 {
		t.Errorf("%d plans held, want 1", held)
	}
}

// The order note is the plan's. Where the documents are going to stand, and whether all in one prompt, the retriever does not know.
func TestHintIsInNoDocument(t *testing.T) {
	pilot := newPilot(t, contextpilot.Config{Policy: "sorted"})
	var hint string
	r := retriever.Wrap(pilot, literal{doc("b", "Beta."), doc("a", "Alpha.")},
		retriever.WithPlans(func(p contextpilot.Plan) { hint = p.Hint }))
	for _, d := range get(context.Background(), t, r) {
		if strings.Contains(d.PageContent, "[b] > [a]") {
			t.Errorf("document %q", d.PageContent)
		}
	}
	if !strings.Contains(hint, "[b] > [a]") {
		t.Errorf("the observed plan has the hint %q", hint)
	}
}

// Bleve gives equal scores in any order, and so do vector stores: once a prompt is in the cache, the same documents in
// another order must give the same bytes.
func TestPermutedResultsGiveEqualBytes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(rt, "n")
		docs := make(literal, n)
		for i := range docs {
			id := string(rune('a' + i))
			docs[i] = doc(id, "Text of "+id)
		}
		pilot := newPilot(t, contextpilot.Config{})
		served := contextpilot.Event{Kind: contextpilot.Served}
		observe := retriever.WithPlans(func(p contextpilot.Plan) { served.Request = p.RequestID })
		blocks := func(docs literal) []string {
			got := texts(get(context.Background(), t, retriever.Wrap(pilot, docs, observe)))
			pilot.Observe(served)
			return got
		}
		first := blocks(docs)
		again := blocks(rapid.Permutation(slices.Clone(docs)).Draw(rt, "order"))
		if diff := cmp.Diff(first, again); diff != "" {
			rt.Fatal(diff)
		}
	})
}

func TestInnerErrorIsReturned(t *testing.T) {
	gone := errors.New("store gone")
	h := &handler{}
	pilot := newPilot(t, contextpilot.Config{})
	r := retriever.Wrap(pilot, failing{gone}, retriever.WithCallbacks(h))
	docs, err := r.GetRelevantDocuments(context.Background(), "q")
	if err != gone || docs != nil { //nolint:errorlint // as it is: each wrapper's word for itself would hide the cause
		t.Errorf("got %v, %v, want no documents and the error %v", docs, err, gone)
	}
	if want := []string{"start q"}; !slices.Equal(h.calls, want) {
		t.Errorf("callbacks %q, want %q", h.calls, want)
	}
	if plans := pilot.Stats().Plans; plans != 0 {
		t.Errorf("%d plans", plans)
	}
}

func TestEmptyResultStaysEmpty(t *testing.T) {
	h := &handler{}
	pilot := newPilot(t, contextpilot.Config{})
	docs := get(context.Background(), t, retriever.Wrap(pilot, literal{}, retriever.WithCallbacks(h)))
	if len(docs) != 0 || pilot.Stats().Plans != 0 {
		t.Errorf("%d documents, %d plans, want none", len(docs), pilot.Stats().Plans)
	}
	if want := []string{"start a question", "end a question 0"}; !slices.Equal(h.calls, want) {
		t.Errorf("callbacks %q, want %q", h.calls, want)
	}
}

// panicking is a tokenizer that fails: planning cannot even begin.
type panicking struct{}

func (panicking) Count(string) int { panic("no vocabulary") }

func TestFaultOfPlanningGivesRetrievalOrder(t *testing.T) {
	pilot := newPilot(t, contextpilot.Config{Policy: "sorted", Tokenizer: panicking{}})
	var fault error
	r := retriever.Wrap(pilot, literal{doc("b", "Beta."), doc("a", "Alpha."), doc("b", "Beta.")},
		retriever.WithPlans(func(p contextpilot.Plan) { fault = p.Fault }))
	docs := get(context.Background(), t, r)
	want := []string{"<doc b>\nBeta.\n</doc>", "<doc a>\nAlpha.\n</doc>", "<doc b>\nBeta.\n</doc>"}
	if diff := cmp.Diff(want, texts(docs)); diff != "" {
		t.Error(diff)
	}
	if !errors.Is(fault, contextpilot.ErrFault) {
		t.Errorf("fault %v", fault)
	}
}

func TestPlanIsForContextAndScope(t *testing.T) {
	pilot := newPilot(t, contextpilot.Config{})
	scope := contextpilot.Scope{Model: "m", Tenant: "t"}
	var plan contextpilot.Plan
	r := retriever.Wrap(pilot, literal{doc("a", "Alpha.")}, retriever.WithScope(scope),
		retriever.WithPlans(func(p contextpilot.Plan) { plan = p }))
	docs := get(framework.WithConversation(context.Background(), "thread"), t, r)
	if plan.Session != "thread" || plan.Scope != scope {
		t.Errorf("planned for session %q, scope %+v", plan.Session, plan.Scope)
	}
	turns := framework.NewCalls(pilot, framework.Options{})
	messages := []framework.Message{{Role: conversation.User, Texts: []conversation.Text{{Value: docs[0].PageContent}}}}
	if turns.Begin("another thread", messages).Planned {
		t.Error("another conversation could claim the plan")
	}
	if got := turns.Begin("thread", messages); !got.Planned || got.Plan.RequestID != plan.RequestID {
		t.Errorf("claimed %q, %v, want %q", got.Plan.RequestID, got.Planned, plan.RequestID)
	}
}

// handler notes its calls.
type handler struct {
	callbacks.SimpleHandler
	calls []string
}

func (h *handler) HandleRetrieverStart(_ context.Context, query string) {
	h.calls = append(h.calls, "start "+query)
}

func (h *handler) HandleRetrieverEnd(_ context.Context, query string, docs []schema.Document) {
	h.calls = append(h.calls, "end "+query+" "+string(rune('0'+len(docs))))
}

func TestPrompt(t *testing.T) {
	got, err := retriever.QAPrompt().Format(map[string]any{
		"context": "<doc a>\nIf x < 1 & y > 2, \"stop\".\n</doc>", "question": "When to stop?",
	})
	if err != nil {
		t.Fatal(err)
	}
	head, question, ok := strings.Cut(got, "<doc a>\nIf x < 1 & y > 2, \"stop\".\n</doc>")
	if !ok || !strings.Contains(head, "[label]") || !strings.Contains(question, "Question: When to stop?") {
		t.Errorf("prompt:\n%s", got)
	}
}

// TestStackedErrorsNameThePackageOnce: wrappers around wrappers say once where the error is from.
func TestStackedErrorsNameThePackageOnce(t *testing.T) {
	fused := retriever.Merge(failing{errors.New("bleve: index is closed")})
	stacked := retriever.Wrap(newPilot(t, contextpilot.Config{}), steady(t, fused, retriever.SteadyOptions{K: 1}))
	_, err := stacked.GetRelevantDocuments(context.Background(), "q")
	if err == nil || strings.Count(err.Error(), "retriever:") != 1 || !strings.HasSuffix(err.Error(), "bleve: index is closed") {
		t.Errorf("error %v, want the package once and the cause", err)
	}
}
