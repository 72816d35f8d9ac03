package server_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/localtest"
	"github.com/ragpilot/ragpilot/engines/local/server"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// An engine over HTTP. The model here is a tiny one with random weights.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "tiny.gguf")
	if err := localtest.WriteModel(file, 1); err != nil {
		fmt.Println(err)
		return
	}
	engine, err := local.Open(local.Config{Model: file, Served: "tiny", CacheBytes: 1 << 20})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()
	api := httptest.NewServer(server.New(engine, server.Config{}))
	defer api.Close()

	client, err := openai.New(openai.Config{BaseURL: api.URL, Model: "tiny"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	for range 2 {
		answer, err := client.Generate(context.Background(), engines.Request{
			MaxTokens: 4, Messages: []engines.Message{{Role: engines.User, Content: "When do the boats leave?"}},
		}, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(answer.Usage.CachedTokens, "of", answer.Usage.PromptTokens, "tokens from the cache")
	}
	// Output:
	// 0 of 31 tokens from the cache
	// 16 of 31 tokens from the cache
}
