package genkit_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/firebase/genkit/go/ai"
	firebase "github.com/firebase/genkit/go/genkit"

	"github.com/ragpilot/ragpilot/adapters/genkit"
	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/framework"
)

// The examples of docs/frameworks.md, in five and in fifteen lines beside what a program has: Genkit with a model, and a
// retriever.

// check stands for what a program does with an error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// started is Genkit with a fake model that says yes.
func started(ctx context.Context) (*firebase.Genkit, ai.Model, *fakeModel) {
	g, fake := firebase.Init(ctx), &fakeModel{}
	supports := &ai.ModelOptions{Supports: &ai.ModelSupports{Multiturn: true, Context: true}}
	return g, firebase.DefineModel(g, "test/yes", supports, fake.generate), fake
}

func Example_five() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	g, model, _ := started(ctx)
	inner, question := shelf(), "seine louvre" // the shelf finds what a question names

	pilot, _ := contextpilot.New(contextpilot.Config{})
	docs, planned := genkit.Retriever(pilot, inner), ai.WithMiddleware(genkit.Middleware(pilot))
	found, err := docs.Retrieve(ctx, &ai.RetrieverRequest{Query: ai.DocumentFromText(question, nil)})
	check(err)
	answer, err := firebase.Generate(ctx, g, ai.WithModel(model), planned, ai.WithDocs(found.Documents...), ai.WithPrompt(question))

	check(err)
	fmt.Println(answer.Text())
	// Output: yes
}

func Example_fifteen() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	g, model, fake := started(ctx)
	inner, questions := shelf(), []string{"seine louvre", "orsay louvre seine"}

	pilot, err := contextpilot.New(contextpilot.Config{})
	check(err)
	docs, planned := genkit.Retriever(pilot, inner), genkit.Middleware(pilot) // one for all calls
	ctx = framework.WithConversation(ctx, "user-42/thread-7")
	var chat []*ai.Message
	for _, question := range questions {
		found, err := docs.Retrieve(ctx, &ai.RetrieverRequest{Query: ai.DocumentFromText(question, nil)})
		check(err)
		chat = append(chat, ai.NewUserTextMessage(question))
		answer, err := firebase.Generate(ctx, g, ai.WithModel(model), ai.WithMiddleware(planned),
			ai.WithMessages(chat...), ai.WithDocs(found.Documents...))
		check(err)
		chat = append(chat, answer.Message)
		fmt.Println(question, "→", answer.Text())
	}

	sent := fake.asked[1].Messages[2].Text() // the second question, as the model gets it
	fmt.Println(strings.Count(sent, "<doc "), "documents in full, in front of the question")
	// Output:
	// seine louvre → yes
	// orsay louvre seine → yes
	// 3 documents in full, in front of the question
}
