package local_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/internal/tinymodel"
)

// The same prompt once more is read from the cache, but for its last tokens. The model of this example has 2 layers and random
// weights; SmolLM2 is a real one of a size for any machine.
func Example() {
	dir, err := os.MkdirTemp("", "model")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "tiny.gguf")
	if err := tinymodel.Write(path, tinymodel.Options{}); err != nil {
		log.Fatal(err)
	}

	engine, err := local.Open(local.Config{Model: path})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()
	question := engines.Request{Messages: []engines.Message{{Role: engines.User, Content: "What is kept in a prefix cache?"}}, MaxTokens: 8}
	for range 2 {
		response, err := engine.Generate(context.Background(), question, nil)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d of %d prompt tokens from the cache\n", response.Usage.CachedTokens, response.Usage.PromptTokens)
	}
	// Output:
	// 0 of 37 prompt tokens from the cache
	// 32 of 37 prompt tokens from the cache
}
