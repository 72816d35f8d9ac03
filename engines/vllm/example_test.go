package vllm_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/engines/vllm"
)

func Example() {
	// A stand-in for vLLM, so that the example runs anywhere.
	server := httptest.NewServer(&fake{version: `{"version":"0.32.0"}`, schema: schema, metrics: metrics, reset: `{"success":true}`, details: true})
	defer server.Close()
	ctx := context.Background()

	pilot, _ := contextpilot.New(contextpilot.Config{})
	scope := contextpilot.Scope{Model: "tiny", Tenant: "team-a"}
	engine, err := vllm.New(vllm.Config{Server: openai.Config{BaseURL: server.URL, Model: "tiny", Scope: scope}, PromptTokens: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()
	defer engine.Subscribe(pilot.Sink(scope))()

	features, err := engine.Detect(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("blocks of", features.BlockSize, "tokens")
	fmt.Println("prompt tokens:", features.PromptTokens)

	response, err := engine.Chat(ctx, vllm.Request{Request: engines.Request{
		ID:       "req-1",
		Messages: []engines.Message{{Role: engines.User, Content: "When do boats leave?"}},
	}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(response.ID, len(response.PromptTokens), "tokens")
	fmt.Println("cached tokens:", engine.Features().CachedTokens)
	// Output:
	// blocks of 32 tokens
	// prompt tokens: yes (the server's schema of ChatCompletionRequest has return_token_ids)
	// req-1 6 tokens
	// cached tokens: yes (an answer has cached_tokens)
}
