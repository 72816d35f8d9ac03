// Command reuse-blocks answers with a model in this process that computes each retrieved block once, and finds it again at any place. The
// order stays the retriever's. A tiny model stands for a real one: its figures are right, its answers mean nothing.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/tmc/langchaingo/chains"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/localtest"
	"github.com/ragpilot/ragpilot/examples/internal/standin"
	"github.com/ragpilot/ragpilot/retriever"
)

func main() {
	file := filepath.Join(os.TempDir(), "ragpilot-tiny.gguf")
	documents, done, err := standin.Notes(2)
	if err = errors.Join(err, localtest.WriteModel(file, 1)); err != nil {
		log.Fatal(err)
	}
	defer done()
	engine, err := local.Open(local.Config{Model: file, Reuse: local.ReuseBlocks, MaxTokens: 8})
	if err != nil {
		log.Fatal(err)
	}
	pilot, _ := contextpilot.New(contextpilot.Config{Policy: "retrieval"})
	qa := chains.NewRetrievalQAFromLLM(langchain.Wrap(pilot, langchain.Model(engine)), retriever.Wrap(pilot, documents))
	for _, question := range []string{"Who opens the upper gates?", "Must the chamber be empty before the gates open?", "Do the upper gates open in a dry summer?"} {
		before := engine.Stats().PromptTokens
		if _, err := chains.Run(context.Background(), qa, question); err != nil {
			log.Fatal(err)
		}
		fmt.Println(engine.Stats().PromptTokens-before, "prompt tokens computed:", question)
	}
}
