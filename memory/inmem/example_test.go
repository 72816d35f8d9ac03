package inmem_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/inmem"
)

func Example() {
	ctx := context.Background()
	store, err := memory.New(inmem.New(), memory.Config{Embedder: memory.Lexical})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	messages := []memory.Message{{Role: memory.User, Content: "I live in Oslo."}}
	for _, user := range []string{"ana", "bo"} {
		changes, err := store.Add(ctx, memory.Scope{User: user}, messages, memory.AddOptions{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(user, changes[0].Event, changes[0].Text)
	}
	// Output:
	// ana ADD I live in Oslo.
	// bo ADD I live in Oslo.
}
