package genkit_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/firebase/genkit/go/ai"

	"github.com/ragpilot/ragpilot/adapters/genkit"
	"github.com/ragpilot/ragpilot/contextpilot"
)

// The second question finds the documents of the first in another order; its prompt begins as the first did.
func Example() {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		panic(err)
	}
	docs := genkit.Retriever(pilot, shelf())                   // put your retriever here
	model := genkit.Middleware(pilot)((&fakeModel{}).generate) // a fake that says yes; usually ai.WithMiddleware

	for _, query := range []string{"seine louvre", "orsay louvre seine"} {
		found, err := docs.Retrieve(context.Background(), &ai.RetrieverRequest{Query: ai.DocumentFromText(query, nil)})
		if err != nil {
			panic(err)
		}
		var order []string
		for _, d := range found.Documents {
			order = append(order, d.Metadata["id"].(string))
		}
		req := ai.NewModelRequest(nil, ai.NewUserTextMessage("Is there a museum?"))
		req.Docs = found.Documents
		answer, err := model(context.Background(), req, nil)
		if err != nil {
			panic(err)
		}
		fmt.Println(strings.Join(order, " "), "→", answer.Text())
	}
	// Output:
	// seine louvre → yes
	// seine louvre orsay → yes
}
