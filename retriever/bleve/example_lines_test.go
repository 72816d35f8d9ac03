package bleve_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/vectorstores"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/retriever"
	"github.com/ragpilot/ragpilot/retriever/bleve"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// The examples of docs/bleve.md, in five and in fifteen lines beside what a program has: a folder and a question.

// check stands for what a program does with an error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// onDisk writes the handbook into a folder.
func onDisk() (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "handbook")
	check(err)
	check(os.CopyFS(filepath.Join(dir, "docs"), handbook))
	return dir, func() { check(os.RemoveAll(dir)) }
}

func Example_five() {
	ctx, question := context.Background(), "which prefixes are cached?"
	home, remove := onDisk()
	defer remove()
	dir := filepath.Join(home, "docs")

	index, err := bleve.Open(ctx, bleve.Options{Dir: dir, Include: bleve.Formats()})
	check(err)
	pilot, _ := contextpilot.New(contextpilot.Config{})
	planned := retriever.Wrap(pilot, index.Retriever(15)) // for chains.NewRetrievalQAFromLLM
	docs, err := planned.GetRelevantDocuments(ctx, question)

	check(err)
	fmt.Println(docs[0].PageContent, index.Close())
	// Output:
	// <doc guide.md#1>
	// Guide > Caching
	// The cache keeps prefixes of prompts.
	// </doc> <nil>
}

func Example_fifteen() {
	ctx, question := context.Background(), "which prefixes are cached?"
	home, remove := onDisk()
	defer remove()
	dir, indexDir := filepath.Join(home, "docs"), filepath.Join(home, "index")

	index, err := bleve.Open(ctx, bleve.Options{
		Dir: dir, IndexDir: indexDir, Include: bleve.Formats(), Progress: bleve.Bar(os.Stderr),
	})
	check(err)
	defer index.Close()
	for _, s := range index.Skipped() { // files that could not be read
		fmt.Println(s.Path, s.Err)
	}
	hits, err := index.Searcher().Search(ctx, store.Query{Text: question, K: 15, Filter: store.Eq(bleve.KeySource, "guide.md")})
	check(err)
	pilot, _ := contextpilot.New(contextpilot.Config{})
	plan := pilot.Plan(contextpilot.Request{Query: question, Blocks: store.Blocks(hits)})
	fmt.Println(plan.Prompt(question))
	snippet, err := index.Snippet(hits[0].Text, question, 32)
	check(err)

	fmt.Println("shown to people:", snippet.Text)
	// Output:
	// <doc guide.md#1>
	// Guide > Caching
	// The cache keeps prefixes of prompts.
	// </doc>
	// which prefixes are cached?
	// shown to people: Caching
	// The cache keeps prefixes
}

// As langchaingo's vector stores are used, with a filter in the form that its store for Qdrant takes.
func ExampleStore_SimilaritySearch() {
	ctx := context.Background()

	db, err := bleve.OpenStore(bleve.StoreOptions{})
	check(err)
	_, err = db.AddDocuments(ctx, []schema.Document{
		{PageContent: "A city in texas", Metadata: map[string]any{"area": 3251}},
		{PageContent: "A country in Asia", Metadata: map[string]any{"area": 2342}},
		{PageContent: "A lost city in the Amazon", Metadata: map[string]any{"area": 1223}},
		{PageContent: "A city in England", Metadata: map[string]any{"area": 4324}},
	})
	check(err)
	docs, err := db.SimilaritySearch(ctx, "a city in england", 10, vectorstores.WithScoreThreshold(0.80))
	check(err)
	fmt.Println(len(docs), docs[0].PageContent, docs[0].Score)
	filter := map[string]any{
		"must": []map[string]any{{"key": "area", "range": map[string]any{"lte": 3000}}},
	}
	pilot, _ := contextpilot.New(contextpilot.Config{})
	cities := vectorstores.ToRetriever(db, 10, vectorstores.WithFilters(filter))
	docs, err = retriever.Wrap(pilot, cities).GetRelevantDocuments(ctx, "Which city is lost?")
	check(err)
	fmt.Println(docs[0].PageContent, db.Close())

	// Output:
	// 1 A city in England 1
	// <doc 7ecmcn3ymeg426xx>
	// A lost city in the Amazon
	// </doc> <nil>
}
