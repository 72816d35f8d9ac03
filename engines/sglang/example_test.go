package sglang_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/engines/sglang"
)

func Example() {
	// A stand-in for SGLang, so that the example runs anywhere.
	answers := http.NewServeMux()
	for path, answer := range map[string]string{
		"/health":      "",
		"/server_info": `{"version":"0.5.23","page_size":64,"enable_cache_report":true}`,
		"/v1/chat/completions": `{"id":"req-1","choices":[{"index":0,"message":{"role":"assistant","content":"At ten."},"finish_reason":"stop",` +
			`"prompt_token_ids":[1,2,3,4,5,6]}],"usage":{"prompt_tokens":6,"completion_tokens":3}}`,
	} {
		answers.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, answer)
		})
	}
	server := httptest.NewServer(answers)
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
