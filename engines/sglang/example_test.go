package sglang_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/engines/sglang"
)

func Example() {
	// A stand-in for SGLang, so that the example runs anywhere.
	server := httptest.NewServer(&fake{info: info, schema: schema, metrics: metrics, report: true})
	defer server.Close()
	ctx := context.Background()

	engine, err := sglang.New(sglang.Config{Server: openai.Config{BaseURL: server.URL, Model: "tiny"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()

	features, err := engine.Detect(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("pages of", features.BlockSize, "tokens")
	fmt.Println("cached tokens:", features.CachedTokens)

	response, err := engine.Chat(ctx, sglang.Request{
		Request: engines.Request{
			ID:       "req-1",
			Messages: []engines.Message{{Role: engines.User, Content: "When do boats leave?"}},
		},
		PromptTokens: true,
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(response.ID, len(response.PromptTokens), "tokens")
	// Output:
	// pages of 64 tokens
	// cached tokens: yes (/server_info has enable_cache_report)
	// req-1 6 tokens
}
