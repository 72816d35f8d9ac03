package retriever_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/schema"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/retriever"
)

// mutable is a retriever whose result can be changed.
type mutable struct{ docs []schema.Document }

func (m *mutable) GetRelevantDocuments(context.Context, string) ([]schema.Document, error) {
	return slices.Clone(m.docs), nil
}

func steady(t testing.TB, inner schema.Retriever, opts retriever.SteadyOptions) *retriever.Steady {
	t.Helper()
	return testkit.Must(retriever.NewSteady(inner, opts))(t)
}

// byScore is what a store does.
func byScore(docs []schema.Document) []schema.Document {
	slices.SortStableFunc(docs, func(a, b schema.Document) int { return cmp.Compare(b.Score, a.Score) })
	return docs
}

// jittered are n documents with scores from 1 down to 0, each moved by up to a share of that range.
func jittered(t *rapid.T, n int, by float64) []schema.Document {
	docs := make([]schema.Document, n)
	for i := range docs {
		score := 1 - float64(i)/float64(n-1)
		if i > 0 && i < n-1 { // the range itself stays
			score += by * rapid.Float64Range(-1, 1).Draw(t, "jitter")
		}
		docs[i] = scored(fmt.Sprintf("d%02d", i), float32(score))
	}
	return byScore(docs)
}

func TestEqualQuestionsGiveEqualDocuments(t *testing.T) {
	ctx := framework.WithConversation(context.Background(), "thread")
	rapid.Check(t, func(t *rapid.T) {
		inner := &mutable{}
		s, err := retriever.NewSteady(inner, retriever.SteadyOptions{K: rapid.IntRange(1, 10).Draw(t, "k"), Bucket: 0.02, Margin: 0.1})
		if err != nil {
			t.Fatal(err)
		}
		var first []string
		for turn := range 8 {
			inner.docs = jittered(t, 20, 0.0149)
			docs, err := s.GetRelevantDocuments(ctx, rapid.SampledFrom([]string{"What is it?", " what  is it? "}).Draw(t, "question"))
			if err != nil {
				t.Fatal(err)
			}
			if turn == 0 {
				first = ids(docs)
			} else if diff := gocmp.Diff(first, ids(docs)); diff != "" {
				t.Fatalf("turn %d: %s", turn, diff)
			}
		}
	})
}

func TestANewDocumentGetsIn(t *testing.T) {
	ctx := framework.WithConversation(context.Background(), "thread")
	inner := &mutable{docs: []schema.Document{scored("a", 10), scored("b", 8), scored("c", 7), scored("d", 0)}}
	s := steady(t, inner, retriever.SteadyOptions{K: 2})
	ask := func(want ...string) {
		t.Helper()
		if diff := gocmp.Diff(want, ids(get(ctx, t, s))); diff != "" {
			t.Error(diff)
		}
	}
	ask("a", "b")
	inner.docs = []schema.Document{scored("a", 10), scored("new", 8.7), scored("b", 8), scored("d", 0)}
	ask("a", "b") // better, but not by the margin
	inner.docs = []schema.Document{scored("a", 10), scored("new", 9.5), scored("b", 8), scored("d", 0)}
	ask("a", "new")
	inner.docs = []schema.Document{scored("b", 10), scored("new", 9.5), scored("a", 2), scored("d", 0)}
	ask("b", "new")
	inner.docs = []schema.Document{scored("new", 10), scored("b", 9.5), scored("d", 0)}
	ask("b", "new") // as before
	inner.docs = []schema.Document{scored("new", 10), scored("b", 5), scored("d", 0)}
	ask("new", "b") // another order, by more than the margin
}

// What was deleted or changed is not given from memory.
func TestSteadyIsNeverStale(t *testing.T) {
	ctx := framework.WithConversation(context.Background(), "thread")
	inner := &mutable{docs: []schema.Document{scored("a", 10), scored("b", 9), scored("c", 0)}}
	s := steady(t, inner, retriever.SteadyOptions{K: 2})
	get(ctx, t, s)
	changed := scored("a", 10)
	changed.PageContent = "Another text of a"
	inner.docs = []schema.Document{changed, scored("c", 1)}
	if diff := gocmp.Diff([]string{"Another text of a", "Text of c"}, texts(get(ctx, t, s))); diff != "" {
		t.Error(diff)
	}
	// a was given with that text now; with a third one it is new, and has no advantage over b.
	changed.PageContent, changed.Score = "A third text of a", 8
	inner.docs = []schema.Document{scored("c", 10), scored("b", 8.5), changed, scored("d", 0)}
	if diff := gocmp.Diff([]string{"Text of c", "Text of b"}, texts(get(ctx, t, s))); diff != "" {
		t.Error(diff)
	}
}

// Within a bucket the order is that of the IDs, in every conversation and without one.
func TestBuckets(t *testing.T) {
	for _, docs := range [][]schema.Document{
		{scored("z", 1), scored("b", 0.551), scored("a", 0.55), scored("c", 0)},
		{scored("z", 1), scored("a", 0.551), scored("b", 0.55), scored("c", 0)},
	} {
		s := steady(t, literal(docs), retriever.SteadyOptions{K: 3, Bucket: 0.1})
		if diff := gocmp.Diff([]string{"z", "a", "b"}, ids(get(context.Background(), t, s))); diff != "" {
			t.Error(diff)
		}
	}
}

func TestSteadyWithoutUsableScores(t *testing.T) {
	nan := float32(math.NaN())
	for name, docs := range map[string]literal{
		"equal": {scored("b", 0), scored("a", 0), scored("c", 0)},
		"NaN":   {scored("a", nan), scored("b", nan), scored("c", nan)},
		"mixed": {scored("a", 1), scored("b", float32(math.Inf(-1))), scored("c", nan)},
	} {
		got := ids(get(context.Background(), t, steady(t, docs, retriever.SteadyOptions{K: 5})))
		if len(got) != 3 {
			t.Errorf("%s: %v", name, got)
		}
		if name == "equal" && !slices.Equal(got, []string{"b", "a", "c"}) {
			t.Errorf("ranks do not stand for scores: %v", got)
		}
	}
	if got := get(context.Background(), t, steady(t, literal{}, retriever.SteadyOptions{K: 5})); len(got) != 0 {
		t.Errorf("%d documents of none", len(got))
	}
}

// Conversations do not see each other's memory, and the oldest is forgotten.
func TestSteadyIsBounded(t *testing.T) {
	near := []schema.Document{scored("a", 10), scored("b", 8), scored("c", 7.5), scored("d", 0)}
	far := []schema.Document{scored("a", 10), scored("c", 8), scored("b", 7.5), scored("d", 0)}
	inner := &mutable{docs: near}
	s := steady(t, inner, retriever.SteadyOptions{K: 2, Conversations: 2, Questions: 1})
	talk := func(id, question string) string {
		docs, err := s.GetRelevantDocuments(framework.WithConversation(context.Background(), id), question)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(ids(docs), "")
	}
	talk("1", "q")
	inner.docs = far
	if got := talk("1", "q") + talk("2", "q"); got != "abac" {
		t.Errorf("conversations 1 and 2 got %s, want abac", got)
	}
	talk("1", "another")
	if got := talk("1", "q"); got != "ac" {
		t.Errorf("got %s for a question that is forgotten", got)
	}
	inner.docs = near
	talk("3", "q") // and 2 is forgotten
	if got := talk("2", "q"); got != "ab" {
		t.Errorf("got %s in a conversation that is forgotten", got)
	}
}

func TestBadSteady(t *testing.T) {
	for _, opts := range []retriever.SteadyOptions{
		{}, {K: 1, Bucket: -1}, {K: 1, Margin: 2}, {K: 1, Bucket: math.NaN()}, {K: 1, Conversations: -1}, {K: 1, Questions: -1},
	} {
		if _, err := retriever.NewSteady(literal{}, opts); !errors.Is(err, retriever.ErrBadSource) {
			t.Errorf("%+v: error %v", opts, err)
		}
	}
	if _, err := retriever.NewSteady(nil, retriever.SteadyOptions{K: 1}); !errors.Is(err, retriever.ErrBadSource) {
		t.Errorf("nil: error %v", err)
	}
	gone := errors.New("store gone")
	away := steady(t, failing{gone}, retriever.SteadyOptions{K: 1})
	if _, err := away.GetRelevantDocuments(context.Background(), "q"); !errors.Is(err, gone) {
		t.Errorf("error %v, want %v", err, gone)
	}
}
