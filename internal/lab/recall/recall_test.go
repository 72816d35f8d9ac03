package recall_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
	"github.com/ragpilot/ragpilot/retriever/bleve"
	"github.com/ragpilot/ragpilot/retriever/elastic"
	"github.com/ragpilot/ragpilot/retriever/store"
)

func TestByTitle(t *testing.T) {
	blocks, err := trace.NewBlocks(
		trace.Block{ID: "a", Text: "Old Mill. A mill. It turns."}, trace.Block{ID: "b", Text: "Old Mill Lane. A street."},
		trace.Block{ID: "c", Text: "no title"}, trace.Block{ID: "d", Text: "Old Mill. Another one."})
	if err != nil {
		t.Fatal(err)
	}
	docs, cases := ByTitle(blocks, []string{"Where is Old Mill Lane?", "An Old Millstone?", "Who owns Old Mill, and why?"})
	var texts []string
	for _, d := range docs {
		texts = append(texts, d.ID+": "+d.Text)
	}
	if diff := cmp.Diff([]string{"a: A mill. It turns.", "b: A street.", "c: no title", "d: Another one."}, texts); diff != "" {
		t.Errorf("documents: -want +got:\n%s", diff)
	}
	var got []string
	for _, c := range cases {
		got = append(got, fmt.Sprint(c.Question, slices.Sorted(maps.Keys(c.Relevant))))
	}
	if diff := cmp.Diff([]string{"Where is Old Mill Lane?[a b d]", "Who owns Old Mill, and why?[a d]"}, got); diff != "" {
		t.Errorf("cases: -want +got:\n%s", diff)
	}
}

// fixed is a fake store that always finds the same.
type fixed []string

func (f fixed) Search(_ context.Context, q store.Query) ([]store.Hit, error) {
	if q.Text == "fail" {
		return nil, store.ErrUnavailable
	}
	var hits []store.Hit
	for _, id := range f[:min(q.K, len(f))] {
		hits = append(hits, store.Hit{ID: id, Text: "text of " + id})
	}
	return hits, nil
}

func TestMeasure(t *testing.T) {
	cases := []Case{
		{Question: "one", Relevant: map[string]bool{"a": true, "z": true}},
		{Question: "two", Relevant: map[string]bool{"c": true}},
	}
	r, err := Measure(t.Context(), "fake", fixed{"a", "b", "c"}, cases, 1, 3, 10)
	if err != nil {
		t.Fatal(err)
	}
	if want := []float64{0.25, 0.75, 0.75}; !slices.Equal(r.At, want) {
		t.Errorf("recall %v, want %v", r.At, want)
	}
	want := "  recall at     1     3    10  questions\n       fake  25.0  75.0  75.0          2\n"
	if diff := cmp.Diff(want, Table(r)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := Measure(t.Context(), "fake", fixed{}, []Case{{Question: "fail"}}, 1); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("err = %v, want that of the store", err)
	}
	if _, err := Measure(t.Context(), "fake", fixed{}, nil, 1); err == nil {
		t.Error("no questions: no error")
	}
}

// TestAgainstElasticsearch: the embedded index finds what Elasticsearch finds with the same words, within a point.
func TestAgainstElasticsearch(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	server := elasticsearch(t, nil)
	docs, cases := multihop(t)
	depth := []int{5, 15, 50}
	var results []Result
	for _, analyzer := range []string{"standard", "en"} {
		s, err := bleve.OpenStore(bleve.StoreOptions{Analyzer: analyzer})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		results = append(results, measure(t, "bleve "+analyzer, s, docs, cases, depth))
	}
	t.Logf("%d documents\n%s", len(docs), Table(results...))

	results = append(results, measure(t, "Elasticsearch standard", server, docs, cases, depth))
	t.Logf("%d documents\n%s", len(docs), Table(results...))
	for i, k := range depth {
		if ours, theirs := results[0].At[i], results[2].At[i]; math.Abs(ours-theirs) > 0.01 && ours < theirs {
			t.Errorf("recall at %d: %.4f, Elasticsearch has %.4f with the same words", k, ours, theirs)
		}
	}
}

func multihop(t *testing.T) ([]store.Document, []Case) {
	t.Helper()
	blocks, err := trace.LoadBlocks(testkit.Shared(t, "traces", "multihop-2wiki", "blocks.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := trace.Open(testkit.Shared(t, "traces", "multihop-2wiki", "trace.jsonl"), blocks)
	if err != nil {
		t.Fatal(err)
	}
	var questions []string
	for q, err := range r.All() {
		if err != nil {
			t.Fatal(err)
		}
		questions = append(questions, q.Query)
	}
	return ByTitle(blocks, questions)
}

// filled is a store that documents can be put into.
type filled interface {
	store.Searcher
	Upsert(ctx context.Context, docs []store.Document) error
}

func measure(t *testing.T, name string, s filled, docs []store.Document, cases []Case, depth []int) Result {
	t.Helper()
	if err := s.Upsert(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	r, err := Measure(t.Context(), name, s, cases, depth...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// elasticsearch returns an index with the stop words of bleve's standard analyzer's kind: those of English. With an embedder
// it is searched by words and vectors.
func elasticsearch(t *testing.T, embedder elastic.Embedder) *elastic.Index {
	t.Helper()
	x, err := elastic.Open(elastic.Options{
		Addresses: []string{storetest.Elasticsearch(t)}, Index: fmt.Sprintf("ragpilot-test-recall-%d", time.Now().UnixNano()),
		Timeout:  time.Minute,
		Embedder: embedder,
	})
	if err != nil {
		t.Fatal(err)
	}
	err = x.Create(t.Context(), elastic.Schema{Analyzer: "stopped", Settings: map[string]any{
		"number_of_shards": 1, "number_of_replicas": 0,
		"analysis": map[string]any{"analyzer": map[string]any{"stopped": map[string]any{"type": "standard", "stopwords": "_english_"}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(x.Drop(context.Background()), x.Close()) })
	return x
}
