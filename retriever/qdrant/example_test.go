package qdrant_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/retriever"
	"github.com/ragpilot/ragpilot/retriever/qdrant"
	"github.com/ragpilot/ragpilot/retriever/retrievertest"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// In five lines: a collection that exists, behind a pilot.
func Example() {
	ctx, question, embedder := context.Background(), "What do valves do?", retrievertest.Embedder{} // embeddings.NewEmbedder(llm) in a program
	addr, collection, remove := filled(embedder)
	defer remove()

	index, err := qdrant.Open(qdrant.Options{Addr: addr, Collection: collection, Embedder: embedder})
	check(err)
	pilot, _ := contextpilot.New(contextpilot.Config{})
	planned := retriever.Wrap(pilot, index.Retriever(store.Query{K: 15})) // for chains.NewRetrievalQAFromLLM
	docs, err := planned.GetRelevantDocuments(ctx, question)

	check(err)
	fmt.Println(docs[0].PageContent, index.Close())
	// Output:
	// <doc valves.md#0>
	// Valves hold water back.
	// </doc> <nil>
}

// filled returns a collection with the handbook in it.
func filled(embedder qdrant.Embedder) (addr, collection string, remove func()) {
	addr, collection, remove = server()
	index, err := qdrant.Open(qdrant.Options{Addr: addr, Collection: collection, Embedder: embedder})
	check(err)
	check(index.Create(context.Background()))
	check(index.Upsert(context.Background(), handbook()))
	check(index.Close())
	return addr, collection, remove
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

// In fifteen lines: a collection of one's own, meaning and words fused by the server, a filter, and the prompt.
func ExampleIndex_Upsert() {
	ctx, question, embedder := context.Background(), "What do valves do?", retrievertest.Embedder{}
	addr, collection, remove := server()
	defer remove()
	documents := handbook()

	index, err := qdrant.Open(qdrant.Options{
		Addr: addr, Collection: collection, Embedder: embedder, Vector: "meaning", Sparse: qdrant.Words{},
	})
	check(err)
	defer index.Close()
	err = index.Create(ctx, "lang") // if it does not exist; an index for filters by "lang"
	check(err)
	err = index.Upsert(ctx, documents) // of the same IDs: replaced
	check(err)
	hits, err := index.Search(ctx, store.Query{Text: question, K: 2, Filter: store.Eq("lang", "en")})
	check(err)
	pilot, err := contextpilot.New(contextpilot.Config{})
	check(err)
	plan := pilot.Plan(contextpilot.Request{Query: question, Blocks: store.Blocks(hits)})
	fmt.Println(plan.Prompt(question))

	// Output:
	// <doc valves.md#0>
	// Valves hold water back.
	// </doc>
	// <doc pumps.md#0>
	// Pumps move water.
	// </doc>
	// What do valves do?
}
