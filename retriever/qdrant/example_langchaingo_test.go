package qdrant_test

import (
	"context"
	"fmt"

	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/vectorstores"

	"github.com/ragpilot/ragpilot/retriever/qdrant"
	"github.com/ragpilot/ragpilot/retriever/retrievertest"
)

// What langchaingo's example of its own store for Qdrant does, with this one: apart from the constructor it is the same.
func ExampleIndex_SimilaritySearch() {
	ctx, e := context.Background(), retrievertest.Embedder{} // embeddings.NewEmbedder(llm) in a program
	addr, collection, remove := server()
	defer remove()
	made, err := qdrant.Open(qdrant.Options{Addr: addr, Collection: collection, Embedder: e})
	check(err)
	check(made.Create(ctx)) // that example's collection exists
	check(made.Close())

	store, err := qdrant.Open(qdrant.Options{Addr: addr, Collection: collection, Embedder: e})
	check(err)
	ids, err := store.AddDocuments(ctx, []schema.Document{
		{PageContent: "A city in texas", Metadata: map[string]any{"area": 3251}},
		{PageContent: "A country in Asia", Metadata: map[string]any{"area": 2342}},
		{PageContent: "A lost city in the Amazon", Metadata: map[string]any{"area": 1223}},
		{PageContent: "A city in England", Metadata: map[string]any{"area": 4324}},
	})
	check(err)
	docs, err := store.SimilaritySearch(ctx, "england", 1)
	check(err)
	fmt.Println(docs[0].PageContent, docs[0].Metadata["area"], docs[0].Metadata["id"] == ids[3])

	filter := map[string]any{
		"must": []map[string]any{{"key": "area", "range": map[string]any{"lte": 3000}}},
	}
	docs, err = store.SimilaritySearch(ctx, "a city in the jungle", 10, vectorstores.WithScoreThreshold(0.5), vectorstores.WithFilters(filter))
	check(err)
	for _, d := range docs {
		fmt.Println(d.PageContent)
	}
	fmt.Println(store.Close())

	// Output:
	// A city in England 4324 true
	// A lost city in the Amazon
	// <nil>
}
