package embed_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ragpilot/ragpilot/embed"
)

// Texts that share words are near to each other, and the same text is the same vector everywhere.
func Example() {
	ctx := context.Background()
	e := embed.NewHashed(0)
	vectors, err := e.EmbedDocuments(ctx, []string{"Ana plays the violin.", "Violins are played by Ana.", "The office is in Bergen."})
	if err != nil {
		log.Fatal(err)
	}
	question, err := e.EmbedQuery(ctx, "What does Ana play?")
	if err != nil {
		log.Fatal(err)
	}
	for _, v := range vectors {
		cosine, err := embed.Cosine(question, v)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d dimensions, %.2f\n", len(v), max(cosine, 0))
	}
	// Output:
	// 384 dimensions, 0.35
	// 384 dimensions, 0.22
	// 384 dimensions, 0.00
}

// A cache in front of a server that takes 64 texts at a time.
func ExampleCached() {
	remote := embed.NewHashed(0) // stands for a client of a server
	e := embed.Cached(embed.Batched(remote, 64), 10_000)
	for range 3 {
		if _, err := e.EmbedDocuments(context.Background(), []string{"Ana plays the violin."}); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(e.Stats())
	// Output: 2 1
}
