package retriever_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/retriever"
	"github.com/ragpilot/ragpilot/retriever/passage"
)

// Two stores rank differently, and a third one is down: what it would have given is missing, and the result says so.
func ExampleNewFanIn() {
	f, err := retriever.NewFanIn(retriever.FanInConfig{Sources: []retriever.Source{
		{Name: "dense", Retriever: found("a", "b", "c")},
		{Name: "words", Retriever: found("c", "a"), Weight: 0.5},
		{Name: "wiki", Retriever: failing{errors.New("connection refused")}},
	}})
	if err != nil {
		log.Fatal(err)
	}
	docs, err := f.GetRelevantDocuments(context.Background(), "How is water moved?")
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range docs {
		fmt.Println(d.Metadata["id"], d.Metadata[retriever.KeySources], d.Metadata[retriever.KeyMissing])
	}
	// Output:
	// a [dense words] [wiki]
	// c [dense words] [wiki]
	// b [dense] [wiki]
}

// The same question again: c is found before b this time, by a hair. The conversation keeps what it has.
func ExampleNewSteady() {
	inner := &mutable{}
	s, err := retriever.NewSteady(inner, retriever.SteadyOptions{K: 2})
	if err != nil {
		log.Fatal(err)
	}
	ctx := framework.WithConversation(context.Background(), "thread-7")
	for _, hair := range []float32{-0.01, 0.01} {
		inner.docs = byScore(literal{scored("a", 0.9), scored("b", 0.5), scored("c", 0.5+hair), scored("d", 0.1)})
		docs, err := s.GetRelevantDocuments(ctx, "How is water moved?")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(ids(docs))
	}
	// Output:
	// [a b]
	// [a b]
}

// Chunks 2 and 3 of one document overlap; the sentences that both hold are sent once.
func ExampleWithPassages() {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		log.Fatal(err)
	}
	inner := literal{
		chunk("", "pumps.md", 3, "They start by themselves. Wait a minute before you open the valve."),
		chunk("", "pumps.md", 2, "Pumps move water. They start by themselves. Wait a min"),
	}
	r := retriever.Wrap(pilot, inner, retriever.WithPassages(passage.Options{}), retriever.WithVersionedIDs())
	docs, err := r.GetRelevantDocuments(context.Background(), "How is water moved?")
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range docs {
		fmt.Println(d.PageContent)
	}
	// Output:
	// <doc pumps.md@451268b1#3>
	// They start by themselves. Wait a minute before you open the valve.
	// </doc>
	// <doc pumps.md@c5a30161#2>
	// Pumps move water.
	// </doc>
}
