// Command reuse-blocks has each retrieved block computed once, and found again at any place: the order stays the retriever's. The model in
// this process is a tiny one that stands for a real one. Its figures are right, its answers mean nothing.
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
	documents, _, err := standin.Notes(2)
	err = errors.Join(err, localtest.WriteModel(file, 1))
	engine, openErr := local.Open(local.Config{Model: file, Reuse: local.ReuseBlocks, MaxTokens: 8})
	pilot, pilotErr := contextpilot.New(contextpilot.Config{Policy: "retrieval"})
	if err = errors.Join(err, openErr, pilotErr); err != nil {
		log.Fatal(err)
	}
	qa := chains.NewRetrievalQAFromLLM(langchain.Wrap(pilot, langchain.Model(engine)), retriever.Wrap(pilot, documents))
	for _, question := range []string{"Who opens the upper gates?", "Must the chamber be empty before the gates open?", "Do the upper gates open in a dry summer?"} {
		before := engine.Stats().PromptTokens
		if _, err := chains.Run(context.Background(), qa, question); err != nil {
			log.Fatal(err)
		}
		fmt.Println(engine.Stats().PromptTokens-before, "prompt tokens computed:", question)
	}
}
