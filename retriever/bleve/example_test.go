package bleve_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"testing/fstest"

	"github.com/ragpilot/ragpilot/retriever/bleve"
)

// handbook stands for a folder, or for an embed.FS.
var handbook = fstest.MapFS{
	"guide.md": {Data: []byte("# Guide\n\n## Install\n\nCopy the binary to your path.\n\n## Caching\n\nThe cache keeps prefixes of prompts.\n")},
	"faq.txt":  {Data: []byte("Is there a server? No, nothing has to be installed.\n")},
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
