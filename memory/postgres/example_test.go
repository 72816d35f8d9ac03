package postgres_test

import (
	"context"
	"fmt"

	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/postgres"
)

// A program that cannot reach its database gets an error when it opens the store.
func Example() {
	backend, err := postgres.Open(context.Background(), "postgres://agent@127.0.0.1:1/agents?connect_timeout=1", postgres.Options{})
	if err != nil {
		fmt.Println("no database")
		return
	}
	store, err := memory.New(backend, memory.Config{Embedder: memory.Lexical})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	// Output: no database
}
