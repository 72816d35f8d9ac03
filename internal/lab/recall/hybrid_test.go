package recall_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/embed/minilm"
	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
	"github.com/ragpilot/ragpilot/retriever"
	"github.com/ragpilot/ragpilot/retriever/bleve"
	"github.com/ragpilot/ragpilot/retriever/qdrant"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// candidates is how many hits each source of a hybrid search gives: what retriever/elastic and retriever/qdrant ask for unless
// their options say otherwise.
const candidates = qdrant.DefaultCandidates

// TestHybrid: words and meaning together find what the better of the two finds, within half a point, with the weights that
// are shipped.
func TestHybrid(t *testing.T) {
	vectors := sentences(t)
	docs, cases := multihop(t)
	embedAll(t, vectors, docs, cases)
	depth := []int{5, 15, 50}
	words, err := bleve.OpenStore(bleve.StoreOptions{Analyzer: "standard"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = words.Close() })
	server, both := elasticsearch(t, nil), elasticsearch(t, vectors)
	dense, mixed := collection(t, docs, vectors, nil), collection(t, docs, vectors, qdrant.Words{})

	singles := []Result{
		measure(t, "bleve", words, docs, cases, depth),
		measure(t, "Elasticsearch", server, docs, cases, depth),
		measure(t, "Qdrant, MiniLM", dense, docs, cases, depth),
	}
	hybrids := []Result{
		fused(t, "bleve + Qdrant", nil, cases, depth, words, dense),
		fused(t, "Elasticsearch + Qdrant", nil, cases, depth, server, dense),
		measure(t, "Elasticsearch, hybrid", both, docs, cases, depth),
	}
	sparse := collection(t, docs, nil, qdrant.Words{})
	others := []Result{
		measure(t, "Qdrant, words", sparse, docs, cases, depth),
		measure(t, "Qdrant, hybrid by RRF", mixed, docs, cases, depth),
		fused(t, "bleve + Qdrant, scores", retriever.WeightedScores(), cases, depth, words, dense),
		fused(t, "Elasticsearch + Qdrant, scores", retriever.WeightedScores(), cases, depth, server, dense),
	}
	half := everySecond(cases) // a constant of 10 was the best of nine for the other half
	for _, constant := range []float64{retriever.DefaultRRF, 10} {
		name := fmt.Sprintf("RRF(%g), every second question", constant)
		others = append(others,
			fused(t, "bleve + Qdrant, "+name, retriever.RRF(constant), half, depth, words, dense),
			fused(t, "Elasticsearch + Qdrant, "+name, retriever.RRF(constant), half, depth, server, dense))
	}
	t.Logf("%d documents\n%s", len(docs), Table(slices.Concat(singles, hybrids, others)...))
	for i, k := range depth {
		best := 0.0
		for _, s := range singles {
			best = max(best, s.At[i])
		}
		for _, h := range hybrids {
			if h.At[i] < best-0.005 {
				t.Errorf("%s, recall at %d: %.4f, and one source alone has %.4f", h.Name, k, h.At[i], best)
			}
		}
	}
}

func everySecond(cases []Case) []Case {
	var out []Case
	for i := 0; i < len(cases); i += 2 {
		out = append(out, cases[i])
	}
	return out
}

// sentences returns the sentence model over the file that keeps its vectors.
func sentences(t *testing.T) *kept {
	t.Helper()
	path := os.Getenv("RAGPILOT_RECALL_VECTORS")
	if path == "" {
		t.Skip("embeds 435,000 tokens: RAGPILOT_RECALL_VECTORS names the file that keeps the vectors")
	}
	dir := os.Getenv("RAGPILOT_MINILM")
	if dir == "" {
		var err error
		if dir, err = minilm.DefaultDir(); err != nil {
			t.Fatal(err)
		}
	}
	m, err := minilm.Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("needs the sentence model, 83 MB: RAGPILOT_MINILM names its folder, and minilm.Pull fetches it")
	}
	if err != nil {
		t.Fatal(err)
	}
	return keep(t, m, path)
}

// embedAll makes all vectors before a store waits for some.
func embedAll(t *testing.T, e embed.Embedder, docs []store.Document, cases []Case) {
	t.Helper()
	var texts []string
	for _, c := range cases {
		texts = append(texts, c.Question)
	}
	for _, d := range docs {
		texts = append(texts, d.Text)
	}
	start := time.Now()
	if _, err := e.EmbedDocuments(t.Context(), texts); err != nil {
		t.Fatal(err)
	}
	t.Logf("vectors of %d texts: %v", len(texts), time.Since(start).Round(time.Second))
}

// collection returns an empty collection of a Qdrant server. The documents are taken out of it when the test ends.
func collection(t *testing.T, docs []store.Document, dense embed.Embedder, sparse qdrant.SparseEmbedder) *qdrant.Index {
	t.Helper()
	opts := qdrant.Options{
		Addr: storetest.Qdrant(t), Collection: fmt.Sprintf("ragpilot-test-recall-%d", time.Now().UnixNano()),
		Sparse: sparse, Timeout: time.Minute,
	}
	if dense != nil {
		opts.Embedder = dense
	}
	if dense != nil && sparse != nil {
		opts.Vector = "meaning"
	}
	x, err := qdrant.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(x.Delete(context.Background(), "", ids(docs)...), x.Close()) })
	return x
}

func ids(docs []store.Document) []string {
	var out []string
	for _, d := range docs {
		out = append(out, d.ID)
	}
	return out
}

func fused(t *testing.T, name string, fusion retriever.Fusion, cases []Case, depth []int, stores ...store.Searcher) Result {
	t.Helper()
	f, err := Fuse(candidates, fusion, stores...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Measure(t.Context(), name, f, cases, depth...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// gone is a fake store that cannot be reached.
type gone struct{}

func (gone) Search(context.Context, store.Query) ([]store.Hit, error) {
	return nil, store.ErrUnavailable
}

// Recall of what half the stores find would be a wrong figure: one that fails is an error.
func TestFuse(t *testing.T) {
	f, err := Fuse(3, nil, fixed{"a", "b", "c"}, fixed{"c", "a", "d"})
	if err != nil {
		t.Fatal(err)
	}
	hits, err := f.Search(t.Context(), store.Query{Text: "x", K: 3})
	var found []string
	for _, h := range hits {
		found = append(found, h.ID)
	}
	if want := []string{"a", "c", "b"}; err != nil || !slices.Equal(found, want) {
		t.Errorf("%v, %v; want %v", found, err, want)
	}
	if f, err = Fuse(3, nil, fixed{"a"}, gone{}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Search(t.Context(), store.Query{Text: "x", K: 3}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("err = %v, want that of the store", err)
	}
}
