package contextpilot_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
)

func passages(ids ...string) []contextpilot.Block {
	var out []contextpilot.Block
	for _, id := range ids {
		out = append(out, contextpilot.Block{ID: id, Text: "What " + id + " says.", Tokens: 120})
	}
	return out
}

func labels(p contextpilot.Plan) string {
	var out []string
	for _, it := range p.Items {
		if it.Ref != nil {
			out = append(out, "see "+it.Ref.Label)
			continue
		}
		out = append(out, it.Label)
	}
	return strings.Join(out, ", ")
}

// Two requests that share blocks: the second is laid out to begin as the first one did.
func Example() {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		panic(err)
	}
	first := pilot.Plan(contextpilot.Request{Blocks: passages("intro", "setup", "faq")})
	second := pilot.Plan(contextpilot.Request{Blocks: passages("limits", "setup", "intro")})
	fmt.Println(labels(first))
	fmt.Println(labels(second))
	fmt.Println(second.Prefix.Blocks, "blocks are expected in the engine's cache")
	// Output:
	// intro, setup, faq
	// intro, setup, limits
	// 2 blocks are expected in the engine's cache
}

// A conversation: what the resent messages show already is referred to.
func ExamplePilot_Plan_multiTurn() {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		panic(err)
	}
	var messages []string              // as the client sends them, without the system prompt
	var position contextpilot.Position // behind them
	ask := func(question string, blocks []contextpilot.Block) {
		plan := pilot.Plan(contextpilot.Request{Session: "ana", Query: question, Blocks: blocks, Prior: messages, Behind: position})
		prompt := plan.Prompt(question)
		fmt.Printf("%s\n\n", prompt)
		messages, position = append(messages, prompt, "(the answer)"), plan.End
	}
	ask("How do I install it?", passages("setup"))
	ask("And on Windows?", passages("setup", "windows"))
	// Output:
	// <doc setup>
	// What setup says.
	// </doc>
	// How do I install it?
	//
	// <doc windows>
	// What windows says.
	// </doc>
	// Please refer to [setup] in the previous conversation.
	// And on Windows?
}

// Requests that are known beforehand are ordered and scheduled together. These are the contexts of ContextPilot's
// Fig. 5.
func ExamplePilot_PlanBatch() {
	pilot, err := contextpilot.New(contextpilot.Config{Policy: "paper"})
	if err != nil {
		panic(err)
	}
	batch, err := pilot.PlanBatch(context.Background(), []contextpilot.Request{
		{ID: "C3", Blocks: passages("4", "1", "0")},
		{ID: "C1", Blocks: passages("2", "1", "3")},
		{ID: "C2", Blocks: passages("2", "6", "1")},
	})
	if err != nil {
		panic(err)
	}
	for _, i := range batch.Order {
		fmt.Println(batch.Plans[i].RequestID, labels(batch.Plans[i]))
	}
	// Output:
	// C1 1, 2, 3
	// C2 1, 2, 6
	// C3 1, 4, 0
}

// shortFirst sends short blocks first. A policy needs no lock: each scope has its own.
type shortFirst struct{}

func (shortFirst) Name() string { return "short-first" }

func (shortFirst) Order(dst []int, q contextpilot.Query) []int {
	at := len(dst)
	for i := range q.Blocks {
		dst = append(dst, i)
	}
	slices.SortStableFunc(dst[at:], func(a, b int) int { return q.Blocks[a].Tokens - q.Blocks[b].Tokens })
	return dst
}

func ExamplePolicy() {
	pilot, err := contextpilot.New(contextpilot.Config{NewPolicy: func() contextpilot.Policy { return shortFirst{} }})
	if err != nil {
		panic(err)
	}
	plan := pilot.Plan(contextpilot.Request{Blocks: []contextpilot.Block{
		{ID: "long", Tokens: 300}, {ID: "short", Tokens: 20}, {ID: "middle", Tokens: 90},
	}})
	fmt.Println(plan.Policy+":", labels(plan))
	// Output: short-first: short, middle, long
}

// An engine that reports no evictions has lost its cache: its next answer corrects the index. Behind the first blocks,
// which were just computed anew, nothing is expected any more.
func ExamplePilot_Observe_contradiction() {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		panic(err)
	}
	ask := func(id string, cached int, blocks ...string) {
		plan := pilot.Plan(contextpilot.Request{ID: id, Blocks: passages(blocks...)})
		fmt.Printf("%s: %d tokens expected, %d found\n", labels(plan), plan.Prefix.Tokens, cached)
		pilot.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: id, Tokens: cached, CachedKnown: true})
	}
	ask("1", 0, "intro", "setup", "faq")
	ask("2", 240, "intro", "setup", "limits")
	ask("3", 0, "intro", "setup", "prices") // the engine was restarted
	ask("4", 240, "intro", "setup", "limits")
	stats := pilot.Stats()
	fmt.Println(stats.Contradicted, "answer contradicted the index and shortened", stats.Shortened, "requests")
	// Output:
	// intro, setup, faq: 0 tokens expected, 0 found
	// intro, setup, limits: 240 tokens expected, 240 found
	// intro, setup, prices: 240 tokens expected, 0 found
	// intro, setup, limits: 240 tokens expected, 240 found
	// 1 answer contradicted the index and shortened 2 requests
}
