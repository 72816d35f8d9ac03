package bleve_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"testing/fstest"

	"github.com/ragpilot/ragpilot/retriever/bleve"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// handbook stands for a folder, or for an embed.FS.
var handbook = fstest.MapFS{
	"guide.md": {Data: []byte("# Guide\n\n## Install\n\nCopy the binary to your path.\n\n## Caching\n\nThe cache keeps prefixes of " +
		"prompts.\n")},
	"faq.txt": {Data: []byte("Is there a server? No, nothing has to be installed.\n")},
}

func Example() {
	index, err := bleve.New(handbook, bleve.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = index.Close() }()

	blocks, err := index.Search(context.Background(), "which prefixes are cached?", 3)
	if err != nil {
		log.Fatal(err)
	}
	for _, b := range blocks {
		fmt.Printf("%s: %s\n", b.ID, strings.ReplaceAll(b.Text, "\n", " | "))
	}
	// Output:
	// guide.md#1: Guide > Caching | The cache keeps prefixes of prompts.
}

func ExampleIndex_Retriever() {
	index, err := bleve.New(handbook, bleve.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = index.Close() }()

	docs, err := index.Retriever(1).GetRelevantDocuments(context.Background(), "copy the binary")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(docs[0].Metadata["id"], docs[0].Metadata["source"])
	// Output:
	// guide.md#0 guide.md
}

// A folder with all formats, kept in an index folder, with a bar while it is indexed by a person.
func ExampleOpen() {
	index, err := bleve.Open(context.Background(), bleve.Options{
		Dir: "internal/pdftext/testdata", IndexDir: "", Include: bleve.Formats(), Progress: bleve.Bar(os.Stderr),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = index.Close() }()
	hits, err := index.Searcher().Search(context.Background(), store.Query{Text: "when does the gate open?", K: 1})
	if err != nil {
		log.Fatal(err)
	}
	snippet, err := index.Snippet(hits[0].Text, "when does the gate open?", 48)
	fmt.Println(hits[0].Metadata[bleve.KeySource], "page", hits[0].Metadata[bleve.KeyPage], snippet.Text, err)
	// Output:
	// chromium.pdf page 1 The gate opens two hours before high water. <nil>
}

// Documents of the program, with metadata to filter by.
func ExampleStore() {
	ctx := context.Background()
	s, err := bleve.OpenStore(bleve.StoreOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	err = s.Upsert(ctx, []store.Document{
		{ID: "note-1", Text: "The cache keeps prefixes.", Metadata: map[string]any{"lang": "en"}},
		{ID: "note-2", Text: "Der Cache behält Präfixe.", Metadata: map[string]any{"lang": "de"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	hits, err := s.Search(ctx, store.Query{Text: "cache", K: 5, Filter: store.Eq("lang", "de")})
	fmt.Println(len(hits), hits[0].ID, err)
	// Output:
	// 1 note-2 <nil>
}
