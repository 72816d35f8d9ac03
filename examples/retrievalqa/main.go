// Command retrievalqa asks a folder of notes with langchaingo's RetrievalQA chain, once as it is and once through
// ragpilot, and prints what each way computes. The engine is a simulator: its prefix cache is real, its answers are not.
package main

import (
	"context"
	"embed"
	"fmt"
	"log"

	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/retriever"
	"github.com/ragpilot/ragpilot/retriever/bleve"
)

//go:embed notes
var notes embed.FS

func questions() []string {
	return []string{
		"When is the lighthouse lamp cleaned?",
		"Who cleans the lamp, and where does the keeper live?",
		"How does the keeper know that the lamp is out?",
		"Which boat brings the lamp oil to the keeper?",
	}
}

func main() {
	index, err := bleve.New(notes, bleve.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = index.Close() }()

	plain := sim.New(sim.Options{})
	ask("without ragpilot", plain, langchain.Model(plain), index.Retriever(3))

	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		log.Fatal(err)
	}
	engine := sim.New(sim.Options{})
	ask("with ragpilot", engine,
		langchain.Wrap(pilot, langchain.Model(engine)), retriever.Wrap(pilot, index.Retriever(3)))
}

// ask runs all questions through a chain and prints what the engine counted.
func ask(title string, engine *sim.Engine, llm llms.Model, documents schema.Retriever) {
	fmt.Printf("%s, engine: %s\n", title, engine.Name())
	before := engine.Stats()
	for _, question := range questions() {
		sources := answer(llm, documents, question)
		after := engine.Stats()
		prompt, cached := after.PromptTokens-before.PromptTokens, after.HitTokens-before.HitTokens
		fmt.Printf("  %3d of %3d tokens cached  %s\n", cached, prompt, question)
		for _, d := range sources {
			fmt.Printf("      %s\n", d.Metadata["source"])
		}
		before = after
	}
	fmt.Printf("  computed: %d tokens\n\n", before.PromptTokens-before.HitTokens)
}

// answer asks one question and returns the documents that the model read.
func answer(llm llms.Model, documents schema.Retriever, question string) []schema.Document {
	qa := chains.NewRetrievalQAFromLLM(llm, documents)
	qa.ReturnSourceDocuments = true
	out, err := chains.Call(context.Background(), qa, map[string]any{"query": question})
	if err != nil {
		log.Fatal(err)
	}
	return out["source_documents"].([]schema.Document)
}
