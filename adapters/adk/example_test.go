package adk_test

import (
	"context"
	"fmt"

	adkmemory "google.golang.org/adk/memory"

	"github.com/ragpilot/ragpilot/adapters/adk"
	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/memory"
)

// An agent's memory: what a user said comes back, for runner.Config's MemoryService.
func ExampleMemory() {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		panic(err)
	}
	store, err := memory.New(memory.NewInMemory(), memory.Config{Embedder: memory.Lexical})
	if err != nil {
		panic(err)
	}
	defer store.Close()
	service := adk.Memory(pilot, store, adk.MemoryOptions{K: 1})

	ctx := context.Background()
	said := []memory.Message{{Role: memory.User, Content: "I keep bees."}} // usually service.AddSessionToMemory
	if _, err := store.Add(ctx, memory.Scope{User: "ana", Agent: "app", Run: "1"}, said, memory.AddOptions{}); err != nil {
		panic(err)
	}
	found, err := service.SearchMemory(ctx, &adkmemory.SearchRequest{Query: "do I keep bees?", UserID: "ana", AppName: "app"})
	if err != nil {
		panic(err)
	}
	for _, m := range found.Memories {
		fmt.Println(m.Content.Parts[0].Text)
	}
	// Output: I keep bees.
}
