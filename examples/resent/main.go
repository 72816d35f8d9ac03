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
	index, err := bleve.New(notes, bleve.Options{}) // put your retriever in its place, and your model in the simulator's
	check(err)
	pilot, err := contextpilot.New(contextpilot.Config{})
	check(err)
	plain := chat("without ragpilot", langchain.Model(sim.New(sim.Options{})), index.Retriever(3))
	model := langchain.Wrap(pilot, langchain.Model(sim.New(sim.Options{})), langchain.WithPlans(show))
	planned := chat("with ragpilot", model, retriever.Wrap(pilot, index.Retriever(3)))
	fmt.Printf("saved: %.0f%% of the computed tokens\n", 100-100*float64(planned)/float64(plain))
}

// chat asks three questions and returns how many prompt tokens were computed.
func chat(title string, model llms.Model, documents schema.Retriever) (computed int) {
	fmt.Println(title)
	ctx := contextpilot.WithConversation(context.Background(), "thread-7") // without it nothing is referred to
	questions := []string{"Who cleans the lamp?", "When does the boat bring oil for the lamp?", "Does the keeper sound the horn in fog?"}
	messages := make([]llms.MessageContent, 0, 2*len(questions))
	for _, question := range questions {
		docs, err := documents.GetRelevantDocuments(ctx, question)
		check(err)
		var prompt strings.Builder
		for _, d := range docs {
			prompt.WriteString(d.PageContent + "\n\n")
		}
		messages = append(messages, llms.TextParts(llms.ChatMessageTypeHuman, prompt.String()+question))
		out, err := model.GenerateContent(ctx, messages)
		check(err)
		messages = append(messages, llms.TextParts(llms.ChatMessageTypeAI, out.Choices[0].Content))
		usage := out.Choices[0].GenerationInfo
		prompted, cached := usage["PromptTokens"].(int), usage["PromptCachedTokens"].(int)
		fmt.Printf("  %4d prompt tokens, %3d computed  %s\n", prompted, prompted-cached, question)
		computed += prompted - cached
	}
	return computed
}

// show prints how each document is sent.
func show(plan contextpilot.Plan) {
	for _, item := range plan.Items {
		fmt.Println("   ", item.Label, map[bool]string{true: "in full", false: "as a reference"}[item.Ref == nil])
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
