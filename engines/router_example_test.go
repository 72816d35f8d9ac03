package engines_test

import (
	"context"
	"fmt"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
)

// A router chooses the replica of each request together with the order of its blocks, and sends it there.
func ExampleRouter() {
	pilot, _ := contextpilot.New(contextpilot.Config{})
	router, _ := engines.NewRouter(engines.RouterOptions{Pilot: pilot})
	for _, name := range []string{"east", "west"} {
		_ = router.Add(name, sim.New(sim.Options{}))
	}
	for _, retrieved := range []string{"boiler fuse lamp", "roof gutter ladder", "lamp gutter roof", "lamp fuse boiler"} {
		var plan *contextpilot.Plan
		_, err := router.Do(context.Background(), contextpilot.Request{Blocks: longDocs(retrieved)}, func(p *contextpilot.Plan) engines.Request {
			plan = p
			return engines.Request{ID: p.RequestID, Messages: []engines.Message{{Role: engines.User, Content: p.Prompt("Where is it?")}}}
		}, nil)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s → %s, as %s\n", retrieved, plan.Scope.Replica, order(*plan))
	}
	// Output:
	// boiler fuse lamp → east, as boiler fuse lamp
	// roof gutter ladder → west, as roof gutter ladder
	// lamp gutter roof → west, as roof gutter lamp
	// lamp fuse boiler → east, as boiler fuse lamp
}

// A gateway that routes by itself can ask what each replica offers.
func ExampleRouter_Scores() {
	pilot, _ := contextpilot.New(contextpilot.Config{})
	router, _ := engines.NewRouter(engines.RouterOptions{Pilot: pilot})
	_ = router.Add("east", nil)
	_ = router.Add("west", nil)
	first, _ := router.Route(contextpilot.Request{Blocks: docs("boiler fuse")})
	first.Done(engines.Usage{}, nil)

	for _, s := range router.Scores(contextpilot.Request{Blocks: docs("lamp fuse boiler")}) {
		fmt.Printf("%s: %d of %d tokens are there, rating %.1f\n", s.Replica, s.Match.Tokens, s.Match.Prompt, s.Rating)
	}
	// Output:
	// east: 192 of 300 tokens are there, rating 1.0
	// west: 0 of 300 tokens are there, rating 0.0
}
