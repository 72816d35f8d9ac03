// Command compressed-handbook answers behind a quarter of a handbook's keys and values. The answers of its tiny model mean nothing.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"log"
	"os"

	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/prompts"

	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/localtest"
)

//go:embed handbook.md
var handbook string

func main() {
	model, file := os.TempDir()+"/ragpilot-ferry-model.gguf", os.TempDir()+"/ragpilot-ferry.context"
	must(model, localtest.WriteModel(model, 1))
	how := local.Compression{Model: model, Task: "Answer passengers.", Notes: "Times and fares.", Out: file}
	how.Documents = []local.Document{{Name: "handbook.md", Text: handbook}}
	c := must(local.Compress(context.Background(), how))
	engine := must(local.Open(local.Config{Model: model, MaxTokens: 8, Contexts: map[string]string{"handbook": file}}))
	chain := chains.NewLLMChain(langchain.Model(engine, langchain.WithContext("handbook")), prompts.NewPromptTemplate("{{.q}}", []string{"q"}))
	_ = must(chains.Run(context.Background(), chain, "When does the ferry leave?"))
	fmt.Println(c.Slots, "of", c.Tokens, "tokens kept;", engine.Stats().PromptTokens, "prompt tokens computed for the question")
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
