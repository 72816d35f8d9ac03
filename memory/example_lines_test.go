package memory_test

import (
	"context"
	"fmt"
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

// The examples of docs/memory.md, in five and in fifteen lines beside what a program has: a model, a buffer, a question.

// check stands for what a program does with an error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// informed is a simulator with an answer of its own making: it knows of peanuts what its prompt says.
func informed() *sim.Engine {
	return sim.New(sim.Options{Reply: func(req engines.Request) string {
		if strings.Contains(req.Messages[len(req.Messages)-1].Content, "- I am allergic to peanuts.") {
			return "No."
		}
		return "I don't know."
	}})
}

func Example_five() {
	ctx, model, buffer := context.Background(), langchain.Model(informed()), lcmemory.NewConversationBuffer()

	store, err := memory.New(memory.NewInMemory(), memory.Config{}) // sqlite.Open(ctx, file, sqlite.Options{}) for one that stays
	check(err)
	pilot, _ := contextpilot.New(contextpilot.Config{})
	remembered := memory.Wrap(pilot, buffer, store, memory.WithDefaultScope(memory.Scope{User: "ana"}))
	chain := chains.NewConversation(langchain.Wrap(pilot, model), remembered)

	for _, said := range []string{"I am allergic to peanuts.", "May I eat something with peanuts?"} {
		answer, err := chains.Run(ctx, chain, said)
		fmt.Println(answer, err)
		check(buffer.Clear(ctx)) // another conversation
	}
	fmt.Println(store.Close())
	// Output:
	// I don't know. <nil>
	// No. <nil>
	// <nil>
}

func Example_fifteen() {
	ctx, model := context.Background(), langchain.Model(informed())
	dir, err := os.MkdirTemp("", "memories")
	check(err)
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "memories.db")
	said := []memory.Message{{Role: memory.User, Content: "I am allergic to peanuts."}, {Role: memory.User, Content: "I work in Bergen."}}

	backend, err := sqlite.Open(ctx, file, sqlite.Options{})
	check(err)
	store, err := memory.New(backend, memory.Config{})
	check(err)
	defer store.Close()
	ana := memory.Scope{User: "ana"}
	_, err = store.Add(ctx, ana, said, memory.AddOptions{})
	check(err)
	hits, err := store.Search(ctx, ana, "Where does she work?", 1, memory.SearchOptions{})
	check(err)
	fmt.Println(hits[0].Memory.Text)
	pilot, _ := contextpilot.New(contextpilot.Config{})
	chain := chains.NewConversation(langchain.Wrap(pilot, model), memory.Wrap(pilot, lcmemory.NewConversationBuffer(), store))
	ctx = memory.WithScope(framework.WithConversation(ctx, "thread-7"), ana)
	answer, err := chains.Run(ctx, chain, "May I eat something with peanuts?")

	fmt.Println(answer, err)
	// Output:
	// I work in Bergen.
	// No. <nil>
}
