package store_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// Without a framework: hits become the blocks of a request.
func Example() {
	var index store.Searcher = found{{ID: "pumps.md#0", Text: "Pumps move water.", Score: 0.9}}
	ctx := context.Background()
	hits, err := index.Search(ctx, store.Query{Text: "What do pumps do?", K: 1})
	if err != nil {
		log.Fatal(err)
	}
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		log.Fatal(err)
	}
	plan := pilot.Plan(contextpilot.Request{Query: "What do pumps do?", Blocks: store.Blocks(hits)})
	fmt.Println(plan.Prompt("What do pumps do?"))
	// Output:
	// <doc pumps.md#0>
	// Pumps move water.
	// </doc>
	// What do pumps do?
}

func ExampleFilter() {
	f := store.All(store.Eq("lang", "en"), store.Not(store.Between("year", 0, 1999)))
	fmt.Println(f.Matches(map[string]any{"lang": "en", "year": 2024}), f.Matches(map[string]any{"lang": "en", "year": 1990}))
	// Output:
	// true false
}
