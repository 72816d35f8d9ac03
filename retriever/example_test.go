package retriever_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/retriever"
)

// found stands for a vector store whose results change their order.
func found(ids ...string) schema.Retriever {
	text := map[string]string{"a": "Pumps move water.", "b": "Valves hold it back.", "c": "Motors drive pumps."}
	var docs literal
	for _, id := range ids {
		docs = append(docs, schema.Document{PageContent: text[id], Metadata: map[string]any{"id": id}})
	}
	return docs
}

// The second result holds the same documents in another order. They are given in the first order, and the last one
// states how the retriever ranked them.
func Example() {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		log.Fatal(err)
	}
	for _, inner := range []schema.Retriever{found("a", "b", "c"), found("c", "a", "b")} {
		docs, err := retriever.Wrap(pilot, inner).GetRelevantDocuments(context.Background(), "How is water moved?")
		if err != nil {
			log.Fatal(err)
		}
		for _, d := range docs {
			fmt.Println(d.PageContent)
		}
		fmt.Println()
	}
	// Output:
	// <doc a>
	// Pumps move water.
	// </doc>
	// <doc b>
	// Valves hold it back.
	// </doc>
	// <doc c>
	// Motors drive pumps.
	// </doc>
	//
	// <doc a>
	// Pumps move water.
	// </doc>
	// <doc b>
	// Valves hold it back.
	// </doc>
	// <doc c>
	// Motors drive pumps.
	// </doc>
}

// A chain that returns its source documents returns those that were sent; Sources gives back what was retrieved. The
// store holds one text twice: it is sent once.
func ExampleSources() {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		log.Fatal(err)
	}
	llm := langchain.Wrap(pilot, langchain.Model(sim.New(sim.Options{})))
	qa := chains.NewRetrievalQAFromLLM(llm, retriever.Wrap(pilot, found("c", "a", "c", "b")))
	qa.ReturnSourceDocuments = true
	out, err := chains.Call(context.Background(), qa, map[string]any{"query": "How is water moved?"})
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range retriever.Sources(out["source_documents"].([]schema.Document)) {
		fmt.Println(d.Metadata[retriever.KeyRank], d.Metadata[retriever.KeyLabel], d.PageContent)
	}
	// Output:
	// 1 c Motors drive pumps.
	// 2 a Pumps move water.
	// 3 c Motors drive pumps.
	// 4 b Valves hold it back.
}

// The prompt explains how to cite; the answer's citations are labels of documents.
func ExampleQAPrompt() {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		log.Fatal(err)
	}
	engine := sim.New(sim.Options{Reply: func(req engines.Request) string { return req.Messages[0].Content }})
	llm := langchain.Wrap(pilot, langchain.Model(engine))
	stuff := chains.NewStuffDocuments(chains.NewLLMChain(llm, retriever.QAPrompt()))
	qa := chains.NewRetrievalQA(stuff, retriever.Wrap(pilot, found("a")))
	prompt, err := chains.Run(context.Background(), qa, "How is water moved?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(prompt)
	// Output:
	// Answer the question at the end from the documents below. The first line of each document gives its label; cite a document as [label] after each statement that rests on it. If the documents do not hold the answer, say that you don't know.
	//
	// <doc a>
	// Pumps move water.
	// </doc>
	//
	// Question: How is water moved?
	// Answer:
}
