package engines_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
)

// The first request after a start: its system prompt is computed while the search runs.
func ExampleWarmer_Retrieve() {
	pilot, _ := contextpilot.New(contextpilot.Config{})
	engine := sim.New(sim.Options{Reply: func(engines.Request) string { return "Twice a year." }})
	warmer, _ := engines.NewWarmer(engines.WarmerOptions{
		Engine: engine, Pilot: pilot,
		Unshared: true, // only so that the figures below are the same each time
	})
	defer warmer.Close()

	ctx, question := context.Background(), "How often is the boiler cleaned?"
	system := strings.Repeat("Answer from the documents. ", 30)
	build := func(plan *contextpilot.Plan) engines.Request {
		return engines.Request{ID: plan.RequestID, Messages: []engines.Message{
			{Role: engines.System, Content: system},
			{Role: engines.User, Content: plan.Prompt(question)},
		}}
	}
	search := func(_ context.Context, provisional func([]contextpilot.Block)) ([]contextpilot.Block, error) {
		first := []contextpilot.Block{{ID: "boiler", Text: "The boiler is cleaned in spring and in autumn."}}
		provisional(first) // of a search in stages: what it has found so far, if it can be known
		return append(first, contextpilot.Block{ID: "office", Text: "The office is open until six."}), nil
	}

	plan, err := warmer.Retrieve(ctx, contextpilot.Request{Query: question}, build, search)
	if err != nil {
		fmt.Println(err)
		return
	}
	response, err := engine.Generate(ctx, build(&plan), nil)
	fmt.Printf("%s %d of %d tokens were computed before, %v\n", response.Text, response.Usage.CachedTokens, response.Usage.PromptTokens, err)
	// Output: Twice a year. 176 of 222 tokens were computed before, <nil>
}
