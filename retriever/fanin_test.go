package retriever_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/schema"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/retriever"
)

// source is a retriever made of a function.
type source func(context.Context, string) ([]schema.Document, error)

func (s source) GetRelevantDocuments(ctx context.Context, query string) ([]schema.Document, error) {
	return s(ctx, query)
}

// slow answers after a time and heeds its context.
func slow(after time.Duration, inner schema.Retriever) schema.Retriever {
	return source(func(ctx context.Context, query string) ([]schema.Document, error) {
		select {
		case <-time.After(after):
			return inner.GetRelevantDocuments(ctx, query)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
}

// scored is a document with an ID and a score.
func scored(id string, score float32) schema.Document {
	d := doc(id, "Text of "+id)
	d.Score = score
	return d
}

func fanIn(t testing.TB, cfg retriever.FanInConfig) *retriever.FanIn {
	t.Helper()
	return testkit.Must(retriever.NewFanIn(cfg))(t)
}

func ids(docs []schema.Document) []string {
	return testkit.Map(docs, func(d schema.Document) string { id, _ := d.Metadata["id"].(string); return id })
}

func TestReciprocalRankFusion(t *testing.T) {
	dense := literal{scored("a", 9), scored("b", 8), scored("c", 7)}
	words := literal{scored("c", 0.3), scored("d", 0.2), scored("a", 0.1)}
	docs := get(context.Background(), t, retriever.Merge(dense, words))
	// c: 1/63 + 1/61, a: 1/61 + 1/63, b: 1/62, d: 1/62: ties go to the first source.
	if diff := cmp.Diff([]string{"a", "c", "b", "d"}, ids(docs)); diff != "" {
		t.Error(diff)
	}
	want := map[string]any{"id": "a", "ragpilot.sources": []string{"1", "2"}}
	if diff := cmp.Diff(want, docs[0].Metadata); diff != "" {
		t.Error(diff)
	}
	if want := float32(1.0/61 + 1.0/63); docs[0].Score != want {
		t.Errorf("score %v, want %v", docs[0].Score, want)
	}
	if _, changed := dense[0].Metadata["ragpilot.sources"]; changed {
		t.Error("a source's document was changed")
	}
}

func TestWeightsAndLimits(t *testing.T) {
	sources := []retriever.Source{
		{Name: "dense", Retriever: literal{scored("a", 0.9), scored("b", 0.5), scored("c", 0.4)}, Limit: 2},
		{Name: "words", Retriever: literal{scored("d", 30), scored("b", 20), scored("e", 10)}, Weight: 2},
	}
	for _, test := range []struct {
		name  string
		cfg   retriever.FanInConfig
		order []string
	}{
		{"ranks", retriever.FanInConfig{}, []string{"b", "d", "e", "a"}},
		{"scores", retriever.FanInConfig{Fusion: retriever.WeightedScores()}, []string{"d", "a", "b", "e"}},
		{"the best two", retriever.FanInConfig{Limit: 2}, []string{"b", "d"}},
		{
			"own fusion",
			retriever.FanInConfig{Fusion: func(f []retriever.Found) float64 { return -f[0].High * float64(f[0].Rank) }},
			[]string{"a", "b", "d", "e"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.cfg.Sources = sources
			if diff := cmp.Diff(test.order, ids(get(context.Background(), t, fanIn(t, test.cfg)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Two stores that were filled with one text under two IDs.
func TestFanInKnowsTheSameText(t *testing.T) {
	copied := scored("copy", 1)
	copied.PageContent = "Text of a"
	docs := get(context.Background(), t, retriever.Merge(literal{scored("a", 1), copied}, literal{copied, scored("b", 1)}))
	if diff := cmp.Diff([]string{"a", "b"}, ids(docs)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"copy"}, docs[0].Metadata["ragpilot.copies"]); diff != "" {
		t.Error(diff)
	}
	if want := float32(1.0/61 + 1.0/61); docs[0].Score != want {
		t.Errorf("score %v, want %v: each source counts once", docs[0].Score, want)
	}
}

func TestPartialResultsAreStated(t *testing.T) {
	gone := errors.New("store gone")
	synctest.Test(t, func(t *testing.T) {
		var got retriever.Report
		f := fanIn(t, retriever.FanInConfig{
			Timeout: time.Second,
			Sources: []retriever.Source{
				{Name: "good", Retriever: slow(500*time.Millisecond, literal{scored("a", 1)})},
				{Name: "failing", Retriever: failing{gone}},
				{Name: "slow", Retriever: slow(time.Hour, literal{scored("b", 1)})},
				{Name: "hasty", Retriever: slow(time.Second/2, literal{scored("c", 1)}), Timeout: 100 * time.Millisecond},
				{Name: "panicking", Retriever: source(func(context.Context, string) ([]schema.Document, error) { panic("no index") })},
				{Name: "empty", Retriever: literal{}},
			},
			Report: func(_ context.Context, r retriever.Report) { got = r },
		})
		start := time.Now()
		docs := get(context.Background(), t, f)
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %v, want the timeout", took)
		}
		missing := []string{"failing", "slow", "hasty", "panicking"}
		if diff := cmp.Diff([]string{"a"}, ids(docs)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(missing, docs[0].Metadata["ragpilot.missing"]); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(missing, got.Missing()); diff != "" || !got.Partial() || got.Documents != 1 || got.Query != "a question" {
			t.Errorf("report %+v: %s", got, diff)
		}
		for i, want := range []error{nil, gone, retriever.ErrLate, retriever.ErrLate, retriever.ErrPanic, nil} {
			if s := got.Sources[i]; !errors.Is(s.Err, want) || s.Late != errors.Is(want, retriever.ErrLate) {
				t.Errorf("source %s: error %v, late %v, want %v", s.Name, s.Err, s.Late, want)
			}
		}
	})
}

func TestFanInFails(t *testing.T) {
	gone := errors.New("store gone")
	all := fanIn(t, retriever.FanInConfig{Sources: []retriever.Source{{Retriever: failing{gone}}, {Retriever: failing{gone}}}})
	if docs, err := all.GetRelevantDocuments(context.Background(), "q"); !errors.Is(err, gone) || !errors.Is(err, retriever.ErrNoSource) ||
		docs != nil {
		t.Errorf("all failed: %v, %v", docs, err)
	}
	required := fanIn(t, retriever.FanInConfig{Sources: []retriever.Source{
		{Retriever: failing{gone}, Required: true},
		{Retriever: literal{}},
	}})
	if _, err := required.GetRelevantDocuments(context.Background(), "q"); !errors.Is(err, gone) {
		t.Errorf("a required one failed: %v", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	enough := errors.New("user left")
	var reported error
	ended := fanIn(t, retriever.FanInConfig{
		Sources: []retriever.Source{{Retriever: literal{scored("a", 1)}}, {Retriever: slow(time.Hour, literal{})}},
		Report:  func(_ context.Context, r retriever.Report) { reported = r.Err },
	})
	cancel(enough)
	if docs, err := ended.GetRelevantDocuments(ctx, "q"); !errors.Is(err, enough) || docs != nil || !errors.Is(reported, enough) {
		t.Errorf("the context ended: %v, %v, reported %v", docs, err, reported)
	}
}

func TestBadFanIns(t *testing.T) {
	good := literal{}
	for name, cfg := range map[string]retriever.FanInConfig{
		"none":            {},
		"nil":             {Sources: []retriever.Source{{}}},
		"limit":           {Sources: []retriever.Source{{Retriever: good, Limit: -1}}},
		"weight":          {Sources: []retriever.Source{{Retriever: good, Weight: -1}}},
		"timeout":         {Sources: []retriever.Source{{Retriever: good, Timeout: -1}}},
		"name twice":      {Sources: []retriever.Source{{Retriever: good, Name: "2"}, {Retriever: good}}},
		"limit of all":    {Sources: []retriever.Source{{Retriever: good}}, Limit: -1},
		"timeout for all": {Sources: []retriever.Source{{Retriever: good}}, Timeout: -1},
	} {
		if _, err := retriever.NewFanIn(cfg); !errors.Is(err, retriever.ErrBadSource) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// backwards is a reranker.
type backwards struct{ err error }

func (b backwards) Rerank(_ context.Context, _ string, docs []schema.Document) ([]schema.Document, error) {
	slices.Reverse(docs)
	if b.err != nil && b.err.Error() == "panic" {
		panic(b.err)
	}
	return docs, b.err
}

func TestReranker(t *testing.T) {
	broken := errors.New("no model")
	var report retriever.Report
	cfg := retriever.FanInConfig{
		Sources: []retriever.Source{{Retriever: literal{scored("a", 1), scored("b", 1)}}},
		Report:  func(_ context.Context, r retriever.Report) { report = r },
	}
	for _, test := range []struct {
		err, reported error
		want          []string
	}{
		{nil, nil, []string{"b", "a"}},
		{broken, broken, []string{"a", "b"}},
		{errors.New("panic"), retriever.ErrPanic, []string{"a", "b"}},
	} {
		cfg.Reranker = backwards{test.err}
		if diff := cmp.Diff(test.want, ids(get(context.Background(), t, fanIn(t, cfg)))); diff != "" {
			t.Errorf("%v: %s", test.err, diff)
		}
		if !errors.Is(report.Rerank, test.reported) {
			t.Errorf("reported %v, want %v", report.Rerank, test.reported)
		}
	}
}

// A source that does not heed its context must not gather goroutines.
func TestLateCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{})
		var mu sync.Mutex
		calls := 0
		deaf := source(func(context.Context, string) ([]schema.Document, error) {
			mu.Lock()
			calls++
			mu.Unlock()
			<-wake
			return nil, nil
		})
		var last retriever.Report
		f := fanIn(t, retriever.FanInConfig{
			Timeout: time.Second,
			Sources: []retriever.Source{{Retriever: literal{scored("a", 1)}}, {Name: "deaf", Retriever: deaf}},
			Report:  func(_ context.Context, r retriever.Report) { last = r },
		})
		for range 40 {
			get(context.Background(), t, f)
			synctest.Wait()
		}
		if calls != 32 || !errors.Is(last.Sources[1].Err, retriever.ErrBusy) {
			t.Errorf("%d calls, last error %v", calls, last.Sources[1].Err)
		}
		close(wake)
		synctest.Wait()
		get(context.Background(), t, f)
		if calls != 33 {
			t.Errorf("%d calls after the late ones are back, want one more", calls)
		}
	})
}

// A hundred searches at once, half of them given up: whoever waits gets an answer, and TestMain sees that nothing runs on.
func TestParallelSearchesWithCancellation(t *testing.T) {
	f := fanIn(t, retriever.FanInConfig{
		Timeout: time.Second,
		Sources: []retriever.Source{
			{Retriever: slow(time.Millisecond, literal{scored("a", 1)})},
			{Retriever: slow(2*time.Millisecond, literal{scored("b", 1)}), Timeout: time.Minute},
			{Retriever: slow(time.Hour, literal{scored("c", 1)}), Timeout: 3 * time.Millisecond},
		},
	})
	steady, err := retriever.NewSteady(f, retriever.SteadyOptions{K: 2, Conversations: 4})
	if err != nil {
		t.Fatal(err)
	}
	pilot := newPilot(t, contextpilot.Config{})
	r := retriever.Wrap(pilot, steady)
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(framework.WithConversation(context.Background(), fmt.Sprint(i%8)))
			defer cancel()
			if i%2 == 0 {
				time.AfterFunc(time.Duration(rand.IntN(2000))*time.Microsecond, cancel)
			}
			docs, err := r.GetRelevantDocuments(ctx, "q")
			if err != nil && !errors.Is(err, context.Canceled) || err == nil && len(docs) == 0 {
				t.Errorf("search %d: %d documents, %v", i, len(docs), err)
			}
		})
	}
	all.Wait()
}

// Which source is faster must not show.
func TestFanInIsDeterministic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var sources, delayed []retriever.Source
		for range rapid.IntRange(1, 4).Draw(rt, "sources") {
			var docs literal
			for _, i := range rapid.SliceOfN(rapid.IntRange(0, 9), 0, 6).Draw(rt, "docs") {
				docs = append(docs, scored(string(rune('a'+i)), float32(i)))
			}
			sources = append(sources, retriever.Source{Retriever: docs})
			delayed = append(delayed, retriever.Source{Retriever: slow(time.Duration(rapid.IntRange(0, 100).Draw(rt, "µs"))*time.Microsecond, docs)})
		}
		want := get(context.Background(), t, fanIn(t, retriever.FanInConfig{Sources: sources}))
		got := get(context.Background(), t, fanIn(t, retriever.FanInConfig{Sources: delayed}))
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatal(diff)
		}
	})
}
