package qdrant_test

import (
	"errors"
	"strings"
	"testing"

	api "github.com/qdrant/go-client/qdrant"
	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/vectorstores"

	"github.com/ragpilot/ragpilot/retriever/qdrant"
	"github.com/ragpilot/ragpilot/retriever/retrievertest"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// cities are stored in the layout of langchaingo's own store for Qdrant.
func cities(t *testing.T, opts qdrant.Options) *qdrant.Index {
	t.Helper()
	_, opts.Client = newFake(t, nil)
	opts.Collection, opts.Layout = "cities", qdrant.Layout{Text: "content", Metadata: qdrant.TopLevel}
	x := create(t, opts)
	_, err := x.AddDocuments(t.Context(), []schema.Document{
		{PageContent: "A city in Texas", Metadata: map[string]any{"area": 3251}},
		{PageContent: "A city in England", Metadata: map[string]any{"area": 4324}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func found(t *testing.T, x *qdrant.Index, question string, options ...vectorstores.Option) (texts []string, docs []schema.Document) {
	t.Helper()
	docs, err := x.SimilaritySearch(t.Context(), question, 5, options...)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range docs {
		texts = append(texts, d.PageContent)
	}
	return texts, docs
}

// TestFoundDocumentsAreAddedAgain: what a search found, with the ID and the version in its metadata, is the same document.
func TestFoundDocumentsAreAddedAgain(t *testing.T) {
	x := cities(t, qdrant.Options{Embedder: retrievertest.Embedder{}})
	_, docs := found(t, x, "England", vectorstores.WithNameSpace("cities"))
	if _, err := x.AddDocuments(t.Context(), docs, vectorstores.WithNameSpace("cities")); err != nil {
		t.Fatal(err)
	}
	if texts, _ := found(t, x, "city"); len(texts) != 2 {
		t.Errorf("added again there are %q", texts)
	}
	docs[0].PageContent = "A city in England, and its port" // whose version is another one
	if _, err := x.AddDocuments(t.Context(), docs[:1]); err != nil {
		t.Errorf("added again with another text: %v", err)
	}
	if texts, _ := found(t, x, "port"); len(texts) != 2 || texts[0] != docs[0].PageContent {
		t.Errorf("with another text there are %q", texts)
	}
	docs[0].Metadata["version"] = "mine"
	if _, err := x.AddDocuments(t.Context(), docs); !errors.Is(err, store.ErrBadDocument) {
		t.Errorf("metadata in the way of the layout: %v, want ErrBadDocument", err)
	}
}

func TestClientsFilter(t *testing.T) {
	small := func(than float64) *api.Filter {
		return &api.Filter{Must: []*api.Condition{api.NewRange("area", &api.Range{Lte: &than})}}
	}
	for name, test := range map[string]struct {
		always, now *api.Filter
		want        int
	}{
		"nil": {nil, nil, 2}, "query's": {nil, small(4000), 1}, "both": {small(3000), small(4000), 0}, "options'": {small(4000), nil, 1},
	} {
		x := cities(t, qdrant.Options{Embedder: retrievertest.Embedder{}, Filter: test.always})
		if texts, _ := found(t, x, "city", vectorstores.WithFilters(test.now)); len(texts) != test.want {
			t.Errorf("%s: found %q, want %d", name, texts, test.want)
		}
	}
}

// TestEmbedderOfAWordSearch: documents get vectors, and a search that compares words has no use for an embedder.
func TestEmbedderOfAWordSearch(t *testing.T) {
	e := retrievertest.Embedder{}
	x := cities(t, qdrant.Options{Embedder: e, Vector: "meaning", Sparse: qdrant.Words{}, Mode: store.Lexical})
	docs, err := x.SimilaritySearch(t.Context(), "city", 5, vectorstores.WithEmbedder(e))
	if docs != nil || !errors.Is(err, store.ErrBadOption) || !strings.Contains(err.Error(), "WithEmbedder") ||
		!strings.Contains(err.Error(), "Options.Mode") {
		t.Errorf("found %v, %v; want ErrBadOption that names both options", docs, err)
	}
	if _, err := x.AddDocuments(t.Context(), []schema.Document{{PageContent: "A city in Peru"}}, vectorstores.WithEmbedder(e)); err != nil {
		t.Errorf("AddDocuments: %v", err)
	}
}

// TestScoresOfWordsAreShares: the best scores 1, as a threshold from 0 to 1 would else mean nothing.
func TestScoresOfWordsAreShares(t *testing.T) {
	x := cities(t, qdrant.Options{Sparse: qdrant.Words{}})
	_, docs := found(t, x, "the city in England")
	if len(docs) != 2 || docs[0].Score != 1 || docs[1].Score <= 0 || docs[1].Score >= 1 {
		t.Errorf("found %v, want the best with the score 1, and another with less", docs)
	}
}
