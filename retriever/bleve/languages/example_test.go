package languages_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/ragpilot/ragpilot/retriever/bleve"
	_ "github.com/ragpilot/ragpilot/retriever/bleve/languages" // for the analyzer "de"
)

// A German question finds another form of its word.
func Example() {
	files := fstest.MapFS{
		"wald.md": {Data: []byte("Im Wald stehen viele Bäume.")},
		"meer.md": {Data: []byte("Das Meer ist tief und kalt.")},
	}
	index, err := bleve.New(files, bleve.Options{Analyzer: "de"})
	if err != nil {
		panic(err)
	}
	defer index.Close()
	blocks, err := index.Search(context.Background(), "Baum", 3)
	if err != nil {
		panic(err)
	}
	for _, b := range blocks {
		fmt.Println(b.ID)
	}
	// Output: wald.md#0
}
