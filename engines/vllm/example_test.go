package vllm_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/engines/vllm"
)

// answers are a stand-in for vLLM, so that the example runs anywhere.
var answers = map[string]string{
	"/health":  "",
	"/version": `{"version":"0.32.0"}`,
	"/metrics": `vllm:cache_config_info{block_size="32",enable_prefix_caching="True"} 1` + "\n",
	"/v1/chat/completions": `data: {"id":"chatcmpl-req-1","prompt_token_ids":[1,2,3,4,5,6],"choices":[{"index":0,"delta":{"content":"At ten."}}]}

data: {"id":"chatcmpl-req-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: {"id":"chatcmpl-req-1","choices":[],"usage":{"prompt_tokens":6,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":0}}}

data: [DONE]

`,
}

func standIn(w http.ResponseWriter, r *http.Request) {
	answer, ok := answers[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if r.Method == http.MethodPost {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	fmt.Fprint(w, answer)
}

func Example() {
	server := httptest.NewServer(http.HandlerFunc(standIn))
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
	// prompt tokens: yes (version 0.32.0, there since 0.10.2)
	// req-1 6 tokens
	// cached tokens: yes (an answer has cached_tokens)
}
