package minilm_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/embed/minilm"
)

// Texts that mean the same are near to each other, although they share no word. The first call of Pull downloads 83 MB.
func Example() {
	ctx := context.Background()
	dir, err := minilm.Pull(ctx, minilm.PullOptions{})
	if err != nil {
		log.Fatal(err)
	}
	model, err := minilm.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	question, err := model.EmbedQuery(ctx, "Which car should I buy?")
	if err != nil {
		log.Fatal(err)
	}
	vectors, err := model.EmbedDocuments(ctx, []string{"A guide to purchasing an automobile.", "The harbour was quiet."})
	if err != nil {
		log.Fatal(err)
	}
	for _, v := range vectors {
		cosine, err := embed.Cosine(question, v)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%.2f\n", cosine)
	}
}

// A model of a few kilobytes, as the tests use one, shows the calls.
func ExampleOpen() {
	model, err := minilm.Open("testdata/tiny")
	if err != nil {
		log.Fatal(err)
	}
	vectors, err := model.EmbedDocuments(context.Background(), []string{"Ana plays the violin.", "A fox jumps."})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(vectors), "vectors of", model.Dimensions(), "dimensions; tokens of the first:", model.Tokens("Ana plays the violin."))
	// Output: 2 vectors of 12 dimensions; tokens of the first: 8
}
