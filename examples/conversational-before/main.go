// Two programs that differ in two lines: a chat with langchaingo's ConversationalRetrievalQA, as it was and with ragpilot.
// Model and store stand for those that a program has; what answers is a simulator.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/memory"

	"github.com/ragpilot/ragpilot/examples/internal/standin"
)

func main() {
	llm := standin.NewModel(standin.Rephrase)
	documents, done, err := standin.Notes(4)
	if err != nil {
		log.Fatal(err)
	}
	defer done()
	buffer := memory.NewConversationBuffer()
	qa := chains.NewConversationalRetrievalQAFromLLM(llm, documents, buffer)
	for _, question := range []string{
		"May I open the upper gates of the chamber myself?",
		"How do I wind up the paddles of the upper gates?",
		"Must the chamber be empty before the lower gates are opened?",
		"Which boats go first if the chamber is full?",
		"And does the keeper open the gates in a dry summer?",
	} {
		answer, err := chains.Run(context.Background(), qa, question)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(question, answer)
	}
	fmt.Println(llm.Computed(), "of", llm.Prompted(), "prompt tokens computed")
}
