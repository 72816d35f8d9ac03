// Command resent is a chat that sends all its messages in every turn, once as it is and once with both wrappers: documents
// that the messages show already are then referred to. The engine is a simulator: its prefix cache is real, its answers are not.
package main

import (
	"context"
	"embed"
	"fmt"
	"log"
	"strings"

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

func main() {
	index, pilot := must(bleve.New(notes, bleve.Options{})), must(contextpilot.New(contextpilot.Config{})) // index: or your retriever
	plain := chat(langchain.Model(sim.New(sim.Options{})), index.Retriever(3))
	model := langchain.Wrap(pilot, langchain.Model(sim.New(sim.Options{})), langchain.WithPlans(func(plan contextpilot.Plan) {
		for _, item := range plan.Items {
			fmt.Println("   ", item.Label, map[bool]string{true: "in full", false: "as a reference"}[item.Ref == nil])
		}
	}))
	planned := chat(model, retriever.Wrap(pilot, index.Retriever(3)))
	fmt.Printf("saved: %.0f%% of the computed tokens\n", 100-100*float64(planned)/float64(plain))
}

func chat(model llms.Model, documents schema.Retriever) (computed int) {
	ctx := context.Background()
	messages := make([]llms.MessageContent, 0, 6)
	for _, question := range []string{"Who cleans the lamp?", "When does the boat bring oil for the lamp?", "Does the keeper sound the horn in fog?"} {
		var prompt strings.Builder
		for _, d := range must(documents.GetRelevantDocuments(ctx, question)) {
			prompt.WriteString(d.PageContent + "\n\n")
		}
		messages = append(messages, llms.TextParts(llms.ChatMessageTypeHuman, prompt.String()+question))
		answer := must(model.GenerateContent(ctx, messages)).Choices[0]
		messages = append(messages, llms.TextParts(llms.ChatMessageTypeAI, answer.Content))
		prompted, cached := answer.GenerationInfo["PromptTokens"].(int), answer.GenerationInfo["PromptCachedTokens"].(int)
		fmt.Printf("  %4d prompt tokens, %3d computed  %s\n", prompted, prompted-cached, question)
		computed += prompted - cached
	}
	return computed
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
