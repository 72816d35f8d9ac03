package sqlite_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/sqlite"
)

// What one process has stored the next one finds.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "memories")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	open := func() *memory.Local {
		backend, err := sqlite.Open(ctx, filepath.Join(dir, "memories.db"), sqlite.Options{})
		if err != nil {
			log.Fatal(err)
		}
		store, err := memory.New(backend, memory.Config{Embedder: memory.Lexical})
		if err != nil {
			log.Fatal(err)
		}
		return store
	}
	store := open()
	messages := []memory.Message{{Role: memory.User, Content: "I live in Oslo."}, {Role: memory.User, Content: "I like tea."}}
	if _, err := store.Add(ctx, memory.Scope{User: "ana"}, messages, memory.AddOptions{}); err != nil {
		log.Fatal(err)
	}
	if err := store.Close(); err != nil {
		log.Fatal(err)
	}

	store = open()
	defer store.Close()
	hits, err := store.Search(ctx, memory.Scope{User: "ana"}, "Which tea does she like?", 1, memory.SearchOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(hits[0].Memory.Text)
	// Output: I like tea.
}
