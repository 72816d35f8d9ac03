package sim_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
)

// The second request starts like the first, so only its own end has to be computed.
func Example() {
	engine := sim.New(sim.Options{})
	manual := strings.Repeat("The pump is serviced every year. ", 40)
	for _, question := range []string{"When is the pump serviced?", "Who made the pump?"} {
		response, err := engine.Generate(context.Background(), engines.Request{
			Messages: []engines.Message{
				{Role: engines.System, Content: "Answer from the manual."},
				{Role: engines.User, Content: manual + question},
			},
		}, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(response.Usage.PromptTokens, "tokens,", response.Usage.CachedTokens, "cached, TTFT", response.TTFT)
	}
	// Output:
	// 332 tokens, 0 cached, TTFT 22.576ms
	// 330 tokens, 320 cached, TTFT 680µs
}

// A full cache gives up the end of the oldest prompt first, and says so.
func ExampleEngine_Subscribe() {
	engine := sim.New(sim.Options{CapacityTokens: 160})
	cancel := engine.Subscribe(func(events ...contextpilot.Event) {
		for _, e := range events {
			fmt.Println(e.Request, e.Kind, e.Tokens)
		}
	})
	defer cancel()
	for _, subject := range []string{"pumps", "valves"} {
		_, err := engine.Generate(context.Background(), engines.Request{
			ID:       subject,
			Messages: []engines.Message{{Role: engines.User, Content: strings.Repeat("All about "+subject+". ", 25)}},
		}, nil)
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// pumps served 0
	// pumps shrunk 48
	// valves served 0
}

// Two contexts take turns in an engine that has room for one of them. With tiers the other one is loaded from the host's memory instead of
// being computed again.
func ExampleServer_tiers() {
	for _, host := range []int{0, 10_000} {
		server := sim.NewServer(sim.ServerOptions{
			Options:  sim.Options{CapacityTokens: 1200},
			StepCost: sim.StepCost{Step: 5e6, Prefill: 60e3}, // 5 ms a step, and 60 µs a token
			Tiers: sim.Tiers{
				Host:       sim.Tier{CapacityTokens: host, Load: sim.GPUAssisted(55e9, 25e9, 2)},
				TokenBytes: 196_608, Layers: 48,
			},
		})
		for i := range 6 {
			server.SubmitPrompt(0, sim.Prompt{
				Segments: []sim.Segment{{ID: uint64(i % 2), Tokens: 960}, {ID: uint64(10 + i), Tokens: 40}},
				Answer:   sim.Segment{ID: uint64(20 + i), Tokens: 1},
			})
			for _, ok := server.Next(); ok; _, ok = server.Next() {
				server.Step()
			}
		}
		fmt.Printf("%d tokens computed, %d loaded\n", server.Work().PrefillTokens, server.Transfers().Host)
	}
	// Output:
	// 5232 tokens computed, 0 loaded
	// 2160 tokens computed, 3072 loaded
}
