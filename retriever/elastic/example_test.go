package elastic_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/retriever"
	"github.com/ragpilot/ragpilot/retriever/elastic"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// A langchaingo retriever of an index, planned by a pilot.
func Example() {
	pilot, _ := contextpilot.New(contextpilot.Config{})
	index, _ := elastic.Open(elastic.Options{Addresses: []string{"http://localhost:9200"}, Index: "docs"})
	planned := retriever.Wrap(pilot, index.Retriever(store.Query{K: 15}))
	docs, err := planned.GetRelevantDocuments(context.Background(), "which prefixes are cached?")
	fmt.Println(len(docs), err)
}

// An index is made, filled and searched for the blocks of a request.
func ExampleIndex() {
	ctx := context.Background()
	index, err := elastic.Open(elastic.Options{
		Addresses: []string{os.Getenv("ELASTICSEARCH_URL")}, APIKey: os.Getenv("ELASTICSEARCH_API_KEY"), Index: "docs",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = index.Close() }()
	if err := index.Create(ctx, elastic.Schema{Analyzer: "english"}); err != nil {
		log.Fatal(err)
	}
	page := store.Document{ID: "guide.md#0", Text: "The cache keeps prefixes.", Metadata: map[string]any{"lang": "en"}}
	if err := index.Upsert(ctx, []store.Document{page}); err != nil {
		log.Fatal(err)
	}
	hits, err := index.Search(ctx, store.Query{Text: "which prefixes?", K: 15, Filter: store.Eq("lang", "en")})
	fmt.Println(store.Blocks(hits), err)
}

// All documents are indexed anew while searches go on.
func ExampleIndex_Rebuild() {
	index, err := elastic.Open(elastic.Options{Index: "docs"})
	if err != nil {
		log.Fatal(err)
	}
	err = index.Rebuild(context.Background(), elastic.Schema{}, func(ctx context.Context, next *elastic.Index) error {
		return next.Upsert(ctx, []store.Document{{ID: "guide.md#0", Text: "The cache keeps prefixes of prompts."}})
	})
	fmt.Println(err)
}
