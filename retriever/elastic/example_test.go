package elastic_test

import (
	"context"
	"fmt"

	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/vectorstores"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/retriever"
	"github.com/ragpilot/ragpilot/retriever/elastic"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// In five lines: an index that exists, behind a pilot.
func Example() {
	ctx, question := context.Background(), "Which valves hold back water?"
	address, alias, remove := filled()
	defer remove()

	index, err := elastic.Open(elastic.Options{Addresses: []string{address}, Index: alias})
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

// filled returns an alias with the handbook behind it.
func filled() (address, alias string, remove func()) {
	address, alias, remove = server()
	index, err := elastic.Open(elastic.Options{Addresses: []string{address}, Index: alias})
	check(err)
	check(index.Create(context.Background(), elastic.Schema{}))
	check(index.Upsert(context.Background(), handbook()))
	check(index.Close())
	return address, alias, remove
}

// In fifteen lines: an index of one's own, a filter, and the prompt.
func ExampleIndex() {
	ctx, question := context.Background(), "Which valves hold back water?"
	address, alias, remove := server()
	defer remove()
	documents := handbook()

	index, err := elastic.Open(elastic.Options{Addresses: []string{address}, Index: alias})
	check(err)
	defer index.Close()
	err = index.Create(ctx, elastic.Schema{}) // an index and the alias, if there is none
	check(err)
	err = index.Upsert(ctx, documents) // returns when searches find them
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
	// Which valves hold back water?
}

// All documents are indexed anew while searches go on.
func ExampleIndex_Rebuild() {
	index, err := elastic.Open(elastic.Options{Index: "docs"})
	check(err)
	err = index.Rebuild(context.Background(), elastic.Schema{}, func(ctx context.Context, next *elastic.Index) error {
		return next.Upsert(ctx, []store.Document{{ID: "guide.md#0", Text: "The cache keeps prefixes of prompts."}})
	})
	fmt.Println(err)
}

// As langchaingo's vector stores are used: documents without IDs of their own, and a retriever.
func ExampleIndex_AddDocuments() {
	ctx := context.Background()
	address, alias, remove := server()
	defer remove()

	index, err := elastic.Open(elastic.Options{Addresses: []string{address}, Index: alias})
	check(err)
	check(index.Create(ctx, elastic.Schema{}))
	_, err = index.AddDocuments(ctx, []schema.Document{
		{PageContent: "Pumps move water.", Metadata: map[string]any{"lang": "en"}},
		{PageContent: "Valves hold water back.", Metadata: map[string]any{"lang": "en"}},
		{PageContent: "Ventile halten Wasser: water, valves.", Metadata: map[string]any{"lang": "de"}},
	})
	check(err)
	english := vectorstores.WithFilters(map[string]any{"lang": "en"})
	docs, err := vectorstores.ToRetriever(index, 1, english).GetRelevantDocuments(ctx, "What do valves do with water?")
	check(err)
	fmt.Println(docs[0].PageContent, docs[0].Score, index.Close())

	// Output:
	// Valves hold water back. 1 <nil>
}
