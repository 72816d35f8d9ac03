package eino_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/cloudwego/eino/components/retriever"
	"github.com/cloudwego/eino/schema"

	"github.com/ragpilot/ragpilot/adapters/eino"
	"github.com/ragpilot/ragpilot/contextpilot"
)

// library is any retriever of yours.
type library struct{}

func (library) Retrieve(_ context.Context, query string, _ ...retriever.Option) ([]*schema.Document, error) {
	if strings.Contains(query, "Paris") {
		return []*schema.Document{{ID: "seine", Content: "The Seine flows through Paris."}, {ID: "louvre", Content: "The Louvre is in Paris."}},
			nil
	}
	return []*schema.Document{
		{ID: "orsay", Content: "The Orsay was a station."},
		{ID: "louvre", Content: "The Louvre is in Paris."},
		{ID: "seine", Content: "The Seine flows through Paris."},
	}, nil
}

// The second question finds the documents of the first in another order; its prompt begins as the first did.
func Example() {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		panic(err)
	}
	docs := eino.Retriever(pilot, library{})
	llm := eino.ChatModel(pilot, &fakeModel{}) // a fake that says yes: put your model here

	for _, question := range []string{"Is there a river in Paris?", "Is there a museum?"} {
		found, err := docs.Retrieve(context.Background(), question)
		if err != nil {
			panic(err)
		}
		var prompt strings.Builder
		for _, d := range found {
			fmt.Printf("%s ", d.ID)
			prompt.WriteString(d.Content + "\n")
		}
		answer, err := llm.Generate(context.Background(), []*schema.Message{schema.UserMessage(prompt.String() + question)})
		if err != nil {
			panic(err)
		}
		fmt.Println("→", answer.Content)
	}
	// Output:
	// seine louvre → yes
	// seine louvre orsay → yes
}
