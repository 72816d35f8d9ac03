package elastic_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
	"github.com/ragpilot/ragpilot/retriever/elastic"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// pages are texts that differ in one word each, and the questions for these words.
func pages(n int) (docs []store.Document, questions []string) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		word := make([]byte, 7)
		for j := range word {
			word[j] = byte('a' + random.IntN(26))
		}
		docs = append(docs, store.Document{
			ID:   fmt.Sprintf("%04d", i),
			Text: "The page of the handbook that is about the " + string(word) + " valve",
		})
		questions = append(questions, "Which page is about the "+string(word)+"?")
	}
	return docs, questions
}

// TestRecallOfHashedVectors: an index that Create makes finds what a comparison with every vector finds.
func TestRecallOfHashedVectors(t *testing.T) {
	const n, asked = 1200, 120
	docs, questions := pages(n)
	e := embed.NewHashed(0)
	texts := make([]string, n)
	for i, d := range docs {
		texts[i] = d.Text
	}
	vectors, err := e.EmbedDocuments(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	url := storetest.Elasticsearch(t)
	recall := func(s elastic.Schema) int {
		s.Settings = oneShard
		opts := elastic.Options{
			Addresses: []string{url}, Embedder: e, Mode: store.Dense, Candidates: 2 * n,
			Index: fmt.Sprintf("ragpilot-test-recall-%d", time.Now().UnixNano()),
		}
		x := open(t, opts)
		if err := x.Create(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = open(t, opts).Drop(context.Background()) })
		if err := x.Upsert(t.Context(), docs); err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, question := range questions[:asked] {
			want, err := e.EmbedQuery(t.Context(), question)
			if err != nil {
				t.Fatal(err)
			}
			cosine := func(i int) float64 {
				c, _ := embed.Cosine(want, vectors[i])
				return c
			}
			best := 0
			for i := range vectors {
				if cosine(i) > cosine(best) {
					best = i
				}
			}
			hits, err := x.Search(t.Context(), store.Query{Text: question, K: 1})
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(hits, func(h store.Hit) bool { return h.ID == docs[best].ID }) {
				found++
			}
		}
		return found
	}
	t.Logf("bbq_hnsw, which the server would choose, finds %d of %d",
		recall(elastic.Schema{IndexOptions: map[string]any{"type": "bbq_hnsw"}}), asked)
	if got := recall(elastic.Schema{}); got < asked-1 {
		t.Errorf("found the best of %d documents for %d of %d questions", n, got, asked)
	}
}

// TestIndexOptions: Create leaves dense vectors to the server, indexes sparse ones as they are, and obeys the options.
func TestIndexOptions(t *testing.T) {
	for name, c := range map[string]struct {
		e    elastic.Embedder
		s    elastic.Schema
		want string
	}{
		"dense":  {constant{1, 0, 2, 3}, elastic.Schema{}, ""},
		"sparse": {constant{1, 0, 0, 3}, elastic.Schema{}, `"index_options":{"type":"hnsw"}`},
		"hashed": {embed.Batched(embed.NewHashed(0), 8), elastic.Schema{}, `"index_options":{"type":"hnsw"}`},
		"chosen": {embed.NewHashed(0), elastic.Schema{IndexOptions: map[string]any{"type": "flat"}}, `"index_options":{"type":"flat"}`},
	} {
		f := &fakeServer{status: 200, body: `{}`}
		x := open(t, elastic.Options{Client: f, Index: "docs", Embedder: c.e})
		if err := x.Create(t.Context(), c.s); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(f.sent, vectorField) || !strings.Contains(f.sent, cmp.Or(c.want, vectorField)) ||
			strings.Contains(f.sent, "index_options") != (c.want != "") {
			t.Errorf("%s: sent %s, want %q", name, f.sent, c.want)
		}
	}
}

const vectorField = `"type":"dense_vector"`

// constant is an embedder that makes one vector of every text.
type constant []float32

func (c constant) EmbedQuery(context.Context, string) ([]float32, error) { return c, nil }

func (c constant) EmbedDocuments(_ context.Context, texts []string) ([][]float32, error) {
	return slices.Repeat([][]float32{c}, len(texts)), nil
}
