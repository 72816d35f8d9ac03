package langchain_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"testing/fstest"

	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/memory"
	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/retriever"
	"github.com/ragpilot/ragpilot/retriever/bleve"
)

// plant is what the examples search: a folder of three short manuals.
func plant() *bleve.Index {
	page := func(name, text string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("# " + name + "\n\n" + strings.Repeat(text+" ", 6) + "\n")}
	}
	index, err := bleve.New(fstest.MapFS{
		"pump.md":  page("Pump", "The pump feeds the boiler with water and is checked every Monday."),
		"valve.md": page("Valve", "The valve closes when the boiler is full of water."),
		"motor.md": page("Motor", "The motor drives the pump and needs oil once a year."),
	}, bleve.Options{})
	if err != nil {
		log.Fatal(err)
	}
	return index
}

// The two questions find the same two manuals, in different order. They are sent in one order, so that the second
// prompt begins as the first did and only its end is computed.
func Example() {
	index, engine := plant(), sim.New(sim.Options{})
	defer func() { _ = index.Close() }()

	pilot, _ := contextpilot.New(contextpilot.Config{})
	llm := langchain.Wrap(pilot, langchain.Model(engine))
	qa := chains.NewRetrievalQAFromLLM(llm, retriever.Wrap(pilot, index.Retriever(2)))
	ctx := framework.WithConversation(context.Background(), "thread-7")
	for _, question := range []string{"When is the pump checked?", "How does the motor drive the pump?"} {
		answer, err := chains.Run(ctx, qa, question)
		if err != nil {
			log.Fatal(err)
		}
		stats := engine.Stats()
		fmt.Println(answer, stats.HitTokens, "of", stats.PromptTokens, "tokens read from the cache so far")
	}
	// Output:
	// This is simulated answer b627f1. 0 of 241 tokens read from the cache so far
	// This is simulated answer 7c673e. 224 of 483 tokens read from the cache so far
}

// A chain with a memory asks the model to rephrase the second question; that request has no documents and passes
// through. The answers do not see earlier documents, so all are sent in full, and found in the cache.
func Example_conversation() {
	index, engine := plant(), sim.New(sim.Options{Reply: sayAgain})
	defer func() { _ = index.Close() }()

	pilot, _ := contextpilot.New(contextpilot.Config{})
	llm := langchain.Wrap(pilot, langchain.Model(engine))
	documents := retriever.Wrap(pilot, index.Retriever(2))
	qa := chains.NewConversationalRetrievalQA(
		chains.LoadStuffQA(llm), chains.LoadCondenseQuestionGenerator(llm), documents, memory.NewConversationBuffer())
	ctx := framework.WithConversation(context.Background(), "thread-7")
	for _, question := range []string{"When is the pump checked?", "And its motor?"} {
		if _, err := chains.Run(ctx, qa, question); err != nil {
			log.Fatal(err)
		}
		stats := engine.Stats()
		fmt.Println(stats.Requests, "requests,", pilot.Stats().LiveRequests, "planned,", stats.HitTokens, "tokens from the cache")
	}
	// Output:
	// 1 requests, 1 planned, 0 tokens from the cache
	// 3 requests, 2 planned, 224 tokens from the cache
}

// A program that resends the whole chat gets references: a document that stands in an earlier message is not sent again.
func ExampleWrap() {
	pilot, _ := contextpilot.New(contextpilot.Config{})
	documents := retriever.Wrap(pilot, manuals{"pump", "valve"})
	model := langchain.Wrap(pilot, langchain.Model(sim.New(sim.Options{Reply: sayAgain})))
	ctx := framework.WithConversation(context.Background(), "thread-7")

	var chat []llms.MessageContent
	for _, question := range []string{"What is a pump?", "What is a valve?"} {
		docs, err := documents.GetRelevantDocuments(ctx, question)
		if err != nil {
			log.Fatal(err)
		}
		text := docs[0].PageContent + "\n\n" + docs[1].PageContent + "\n\n" + question
		chat = append(chat, llms.TextParts(llms.ChatMessageTypeHuman, text))
		response, err := model.GenerateContent(ctx, chat)
		if err != nil {
			log.Fatal(err)
		}
		chat = append(chat, llms.TextParts(llms.ChatMessageTypeAI, response.Choices[0].Content))
		fmt.Printf("--- sent:\n%s\n", response.Choices[0].Content)
	}
	// Output:
	// --- sent:
	// <doc pump>
	// All about the pump.
	// </doc>
	//
	// <doc valve>
	// All about the valve.
	// </doc>
	//
	// What is a pump?
	// --- sent:
	// Please refer to [pump] in the previous conversation.
	// Please refer to [valve] in the previous conversation.
	//
	// What is a valve?
}

// Any engine can be used as a model; images are refused, as an engine takes text only.
func ExampleModel() {
	model := langchain.Model(sim.New(sim.Options{}))
	answer, err := llms.GenerateFromSinglePrompt(context.Background(), model, "Hello!")
	fmt.Println(answer, err)

	_, err = model.GenerateContent(context.Background(), []llms.MessageContent{
		{Role: llms.ChatMessageTypeHuman, Parts: []llms.ContentPart{llms.ImageURLPart("http://example.com/pump.png")}},
	})
	fmt.Println(err)
	// Output:
	// This is simulated answer 7bc855. <nil>
	// langchain: message 1: unsupported operation by engines: part 1, an image URL
}

// sayAgain answers with the last message, so that an example can show what was sent.
func sayAgain(req engines.Request) string { return req.Messages[len(req.Messages)-1].Content }

// manuals is a retriever that always finds the same.
type manuals []string

func (m manuals) GetRelevantDocuments(context.Context, string) ([]schema.Document, error) {
	docs := make([]schema.Document, len(m))
	for i, name := range m {
		docs[i] = schema.Document{PageContent: "All about the " + name + ".", Metadata: map[string]any{"id": name}}
	}
	return docs, nil
}
