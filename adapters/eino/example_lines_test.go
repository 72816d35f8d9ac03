package eino_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/cloudwego/eino/schema"

	"github.com/ragpilot/ragpilot/adapters/eino"
	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/framework"
)

// The examples of docs/frameworks.md, in five and in fifteen lines beside what a program has: a retriever, a model, and how
// it words its prompt.

// check stands for what a program does with an error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// worded puts documents and question into a message, as a template of the program's would.
func worded(docs []*schema.Document, question string) *schema.Message {
	var prompt strings.Builder
	for _, d := range docs {
		prompt.WriteString(d.Content + "\n")
	}
	return schema.UserMessage(prompt.String() + "\n" + question)
}

func Example_five() {
	ctx, question, inner, model := context.Background(), "Is there a river in Paris?", library{}, &fakeModel{} // a fake that says yes

	pilot, _ := contextpilot.New(contextpilot.Config{})
	docs, llm := eino.Retriever(pilot, inner), eino.ChatModel(pilot, model)
	found, err := docs.Retrieve(ctx, question)
	check(err)
	answer, err := llm.Generate(ctx, []*schema.Message{worded(found, question)})

	check(err)
	fmt.Println(answer.Content)
	// Output: yes
}

func Example_fifteen() {
	ctx, inner, model := context.Background(), shelf{}, &fakeModel{} // a fake that says yes
	questions := []string{"seine louvre", "orsay louvre seine"}      // the shelf finds what a question names

	pilot, err := contextpilot.New(contextpilot.Config{})
	check(err)
	docs, llm := eino.Retriever(pilot, inner), eino.ChatModel(pilot, model)
	ctx = framework.WithConversation(ctx, "user-42/thread-7")
	var chat []*schema.Message
	for _, question := range questions {
		found, err := docs.Retrieve(ctx, question)
		check(err)
		chat = append(chat, worded(found, question))
		answer, err := llm.Generate(ctx, chat) // what the chat shows already becomes references
		check(err)
		chat = append(chat, answer)
		fmt.Println(question, "→", answer.Content)
	}

	sent := model.asked[1][2].Content // the second question, as the model gets it
	fmt.Println(strings.Count(sent, "<doc "), "document in full,", strings.Count(sent, "Please refer to ["), "references")
	// Output:
	// seine louvre → yes
	// orsay louvre seine → yes
	// 1 document in full, 2 references
}
