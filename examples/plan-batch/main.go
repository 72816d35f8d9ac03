// Command plan-batch plans many requests together (PlanBatch) and prints what an engine with a small cache computes for them,
// as they come and as they are planned. The engine is a simulator.
package main

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
)

// requests are questions about stars; topics that belong together are found together, in changing order.
func requests() []contextpilot.Request {
	found := []string{
		"sirius vega rigel", "mira algol deneb", "vega sirius altair", "algol mira spica", "rigel sirius vega",
		"deneb mira algol", "sirius altair vega", "spica algol mira", "vega rigel sirius", "mira deneb algol",
	}
	reqs := make([]contextpilot.Request, len(found))
	for i, stars := range found {
		reqs[i].ID = fmt.Sprintf("request-%d", i+1)
		reqs[i].Query = fmt.Sprintf("Question %d?", i+1)
		for star := range strings.FieldsSeq(stars) {
			text := strings.Repeat(fmt.Sprintf("What the catalogue says of %s: its colour, its distance, its name. ", star), 10)
			reqs[i].Blocks = append(reqs[i].Blocks, contextpilot.Block{ID: star, Text: text})
		}
	}
	return reqs
}

func main() {
	reqs := requests()
	computed := map[string]int{}
	for _, policy := range []string{"retrieval", contextpilot.DefaultPolicy} {
		pilot, err := contextpilot.New(contextpilot.Config{Policy: policy})
		if err != nil {
			log.Fatal(err)
		}
		engine := sim.New(sim.Options{CapacityTokens: 1200})
		batch := contextpilot.Batch{Order: make([]int, len(reqs))}
		if policy == "retrieval" { // one after the other, as they come
			for i, r := range reqs {
				batch.Plans, batch.Order[i] = append(batch.Plans, pilot.Plan(r)), i
			}
		} else if batch, err = pilot.PlanBatch(context.Background(), reqs); err != nil {
			log.Fatal(err)
		}
		fmt.Printf("policy %s, engine: %s\n", policy, engine.Name())
		for _, i := range batch.Order {
			computed[policy] += run(engine, &batch.Plans[i], reqs[i].Query)
		}
		fmt.Printf("  computed: %d tokens\n\n", computed[policy])
	}
	fmt.Printf("saved: %.0f%%\n", 100-100*float64(computed[contextpilot.DefaultPolicy])/float64(computed["retrieval"]))
}

// run sends one request and returns the number of prompt tokens that were computed.
func run(engine *sim.Engine, plan *contextpilot.Plan, question string) int {
	response, err := engine.Generate(context.Background(), engines.Request{
		ID: plan.RequestID, Messages: []engines.Message{{Role: engines.User, Content: plan.Prompt(question)}},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	labels := make([]string, len(plan.Items))
	for i, item := range plan.Items {
		labels[i] = item.Label
	}
	u := response.Usage
	fmt.Printf("  %-10s  %-20s  %3d of %3d tokens cached\n", plan.RequestID, strings.Join(labels, " "), u.CachedTokens, u.PromptTokens)
	return u.PromptTokens - u.CachedTokens
}
