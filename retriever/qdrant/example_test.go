package qdrant_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/retriever"
	"github.com/ragpilot/ragpilot/retriever/qdrant"
	"github.com/ragpilot/ragpilot/retriever/retrievertest"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// In five lines: a collection that exists, behind a pilot. The embedder is any of langchaingo's.
func Example() {
	var embedder qdrant.Embedder = retrievertest.Embedder{} // embeddings.NewEmbedder(llm) in a program
	pilot, _ := contextpilot.New(contextpilot.Config{})
	index, err := qdrant.Open(qdrant.Options{Collection: "handbook", Embedder: embedder})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = index.Close() }()
	docs := retriever.Wrap(pilot, index.Retriever(store.Query{K: 15})) // for chains.NewRetrievalQAFromLLM
	fmt.Printf("%T\n", docs)
	// Output:
	// *retriever.wrapped
}

// Where no server runs, the error says so: nothing is answered from an empty result.
func ExampleIndex_Search_unavailable() {
	index, err := qdrant.Open(qdrant.Options{Addr: "127.0.0.1:1", Collection: "handbook", Sparse: qdrant.Words{}})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = index.Close() }()
	hits, err := index.Search(context.Background(), store.Query{Text: "Who may open the valve?", K: 3})
	fmt.Println(len(hits), errors.Is(err, store.ErrUnavailable))
	// Output:
	// 0 true
}

// Fifteen lines: a collection of one's own, meaning and words fused by the server, a filter, and what comes back. It needs a
// server, so it is only compiled here; TestRealExample runs it.
func ExampleIndex_Upsert() {
	if err := handbook(os.Getenv("QDRANT_ADDR"), "handbook"); err != nil {
		log.Fatal(err)
	}
}

func handbook(addr, collection string) error {
	ctx := context.Background()
	index, err := qdrant.Open(qdrant.Options{
		Addr: addr, Collection: collection,
		Embedder: retrievertest.Embedder{}, Vector: "meaning", Sparse: qdrant.Words{},
	})
	if err != nil {
		return err
	}
	defer func() { _ = index.Close() }()
	if err := index.Create(ctx, "lang"); err != nil {
		return err
	}
	err = index.Upsert(ctx, []store.Document{
		{ID: "pumps.md#0", Text: "Pumps move water.", Metadata: map[string]any{"lang": "en"}},
		{ID: "valves.md#0", Text: "Valves hold water back.", Metadata: map[string]any{"lang": "en"}},
		{ID: "pumpen.md#0", Text: "Pumpen bewegen Wasser.", Metadata: map[string]any{"lang": "de"}},
	})
	if err != nil {
		return err
	}
	hits, err := index.Search(ctx, store.Query{Text: "What do valves do?", K: 2, Filter: store.Eq("lang", "en")})
	for _, h := range hits {
		fmt.Println(h.ID, h.Version[:8], h.Text)
	}
	return err
}
