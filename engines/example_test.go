package engines_test

import (
	"context"
	"fmt"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
)

// Any engine is used alike: here the simulator, whose reports keep a pilot's index true.
func Example() {
	pilot, _ := contextpilot.New(contextpilot.Config{})
	var engine engines.Engine = sim.New(sim.Options{Reply: func(engines.Request) string { return "Twice a year." }})
	defer engine.Subscribe(pilot.Sink(contextpilot.Scope{}))()

	plan := pilot.Plan(contextpilot.Request{Blocks: []contextpilot.Block{
		{ID: "boiler", Text: "The boiler is cleaned in spring and in autumn."},
	}})
	response, err := engine.Generate(context.Background(), engines.Request{
		ID:       plan.RequestID,
		Messages: []engines.Message{{Role: engines.User, Content: plan.Prompt("How often is the boiler cleaned?")}},
	}, func(piece string) error {
		_, err := fmt.Print(piece)
		return err
	})
	fmt.Println()
	fmt.Println(response.ID == plan.RequestID, response.Usage.CachedTokens, err)
	fmt.Println(pilot.Stats().Events, "event:", contextpilot.Served)
	// Output:
	// Twice a year.
	// true 0 <nil>
	// 1 event: served
}
