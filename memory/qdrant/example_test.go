package qdrant_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/qdrant"
)

// A program that cannot reach its server gets an error when it opens the store.
func Example() {
	backend, err := qdrant.Open(context.Background(), qdrant.Options{Addr: "127.0.0.1:1", Attempts: 1})
	if errors.Is(err, qdrant.ErrUnavailable) {
		fmt.Println("no server")
		return
	}
	store, err := memory.New(backend, memory.Config{Embedder: memory.Lexical})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	// Output: no server
}
