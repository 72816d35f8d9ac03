// Command memory is an agent that remembers: two conversations of one user, in a file, with the search by words, which
// needs no model. The second conversation knows what was said in the first, a memory is corrected and one deleted. The
// engine is a simulator that answers with the number of memories in its prompt.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/tmc/langchaingo/chains"
	lcmemory "github.com/tmc/langchaingo/memory"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/sqlite"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "memory")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	backend, err := sqlite.Open(ctx, filepath.Join(dir, "memories.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	store, err := memory.New(backend, memory.Config{Embedder: memory.Lexical}) // statements verbatim, found by words
	if err != nil {
		return err
	}
	defer store.Close()
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		return err
	}
	engine := sim.New(sim.Options{Reply: func(req engines.Request) string {
		return fmt.Sprintf("I know %d things.", strings.Count(req.Messages[0].Content, "\n- "))
	}})
	llm := langchain.Wrap(pilot, langchain.Model(engine))

	ana := memory.Scope{User: "ana"}
	talk := func(thread string, questions ...string) error {
		chain := chains.NewConversation(llm, memory.Wrap(pilot, lcmemory.NewConversationBuffer(), store,
			memory.WithPlans(show), memory.WithAdd(memory.AddOptions{Metadata: map[string]any{"thread": thread}})))
		for _, question := range questions {
			fmt.Printf("\n%s: %s\n", thread, question)
			ctx := memory.WithScope(framework.WithConversation(ctx, thread), ana)
			answer, err := chains.Run(ctx, chain, question)
			if err != nil {
				return err
			}
			fmt.Println("  answer:", strings.TrimSpace(answer))
		}
		return nil
	}
	if err := talk("monday", "I am allergic to peanuts.", "My desk is on the third floor."); err != nil {
		return err
	}
	if err := talk("friday", "Which floor is my desk on?"); err != nil {
		return err
	}

	hits, err := store.Search(ctx, ana, "desk on the third floor", 1, memory.SearchOptions{Filter: memory.Eq("thread", "monday")})
	if err != nil {
		return err
	}
	moved := "My desk is on the fifth floor."
	if _, err := store.Update(ctx, hits[0].Memory.ID, memory.Update{Text: &moved}); err != nil {
		return err
	}
	if err := talk("sunday", "So which floor is my desk on?"); err != nil {
		return err
	}
	removed, err := store.DeleteAll(ctx, ana, memory.DeleteOptions{})
	fmt.Printf("\n%d memories deleted\n", removed)
	return err
}

// show prints the recalled memories in prompt order.
func show(plan contextpilot.Plan) {
	for _, item := range plan.Items {
		fmt.Println("  recalled:", plan.Block(item.Index).Text)
	}
}
