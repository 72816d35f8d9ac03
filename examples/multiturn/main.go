// Command multiturn is a chat that keeps its messages itself and uses the core directly: no framework. Each turn
// retrieves, plans with the texts of all earlier messages, and sends the whole chat. The engine is a simulator.
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

// retrieve stands for a retriever: the recipes whose names are in the question, in the question's order.
func retrieve(question string) (blocks []contextpilot.Block) {
	recipes := map[string]string{
		"bread": "Mix flour, water, salt and a little yeast. Let the dough rest overnight in a cool place, " +
			"fold it four times, and bake it in a closed pot for forty minutes.",
		"soup": "Cut onions, carrots and leek. Let them sweat in butter, add water and a bay leaf, " +
			"and cook slowly until the carrots are soft. Salt it at the end only.",
		"cake": "Beat butter and sugar until white, add three eggs one after the other, " +
			"then flour and lemon peel. Bake for fifty minutes and leave the door closed.",
	}
	for word := range strings.FieldsSeq(strings.ToLower(question)) {
		if text, ok := recipes[strings.Trim(word, ",.?")]; ok {
			blocks = append(blocks, contextpilot.Block{ID: strings.Trim(word, ",.?"), Text: text})
		}
	}
	return blocks
}

func main() {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		log.Fatal(err)
	}
	engine := sim.New(sim.Options{})
	defer engine.Subscribe(pilot.Sink(contextpilot.Scope{}))()
	fmt.Println("engine:", engine.Name())
	talk(pilot, engine, "You are a patient cook.")
}

// talk has a conversation of four turns.
func talk(pilot *contextpilot.Pilot, engine engines.Engine, system string) {
	messages := []engines.Message{{Role: engines.System, Content: system}}
	var prior []string            // texts of the messages so far, without the system prompt
	var end contextpilot.Position // behind the last of them
	say := func(role engines.Role, text string) {
		messages = append(messages, engines.Message{Role: role, Content: text})
		prior = append(prior, text)
	}
	for _, question := range []string{
		"How do I make bread?",
		"Which takes longer, soup or bread?",
		"Can I bake the cake and the bread one after the other?",
		"So what do I do first: bread, soup or cake?",
	} {
		plan := pilot.Plan(contextpilot.Request{
			Session: "kitchen", Query: question, Blocks: retrieve(question), Prior: prior, Behind: end,
		})
		say(engines.User, plan.Prompt(question))
		response, err := engine.Generate(context.Background(), engines.Request{ID: plan.RequestID, Messages: messages}, nil)
		if err != nil {
			pilot.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: plan.RequestID}) // take the turn back
			log.Fatal(err)
		}
		say(engines.Assistant, response.Text)
		end = plan.End.Answered(response.Usage.OutputTokens)

		fmt.Printf("\nturn %d: %s\n", plan.Turn, question)
		for _, item := range plan.Items {
			if item.Ref != nil {
				fmt.Printf("  %s: shown in turn %d\n", item.Label, item.Ref.Turn)
			} else {
				fmt.Printf("  %s: sent in full\n", item.Label)
			}
		}
		u := response.Usage
		fmt.Printf("  %d prompt tokens, %d cached, %d computed\n", u.PromptTokens, u.CachedTokens, u.PromptTokens-u.CachedTokens)
	}
}
