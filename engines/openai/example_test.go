package openai_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// A stand-in for an inference server, so that the example runs anywhere.
func scripted() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/tokenize" {
			fmt.Fprint(w, `{"count":5}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range []string{
			`{"choices":[{"index":0,"delta":{"content":"At high "}}]}`,
			`{"choices":[{"index":0,"delta":{"content":"tide."},"finish_reason":"stop"}]}`,
			`{"choices":[],"usage":{"prompt_tokens":640,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":608}}}`,
			`[DONE]`,
		} {
			fmt.Fprintf(w, "data: %s\n\n", event)
		}
	}))
}

func Example() {
	server := scripted()
	defer server.Close()

	engine, err := openai.New(openai.Config{BaseURL: server.URL, Model: "llama"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()

	response, err := engine.Generate(context.Background(), engines.Request{
		ID:       "req-1",
		Messages: []engines.Message{{Role: engines.User, Content: "When do boats leave?"}},
	}, func(piece string) error {
		fmt.Printf("%q\n", piece)
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(response.ID, response.Finish)
	fmt.Println("from the cache:", response.Usage.CachedTokens, "of", response.Usage.PromptTokens)
	// Output:
	// "At high "
	// "tide."
	// req-1 stop
	// from the cache: 608 of 640
}

func ExampleEngine_Tokenizer() {
	server := scripted()
	engine, err := openai.New(openai.Config{BaseURL: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()
	tokenizer, err := engine.Tokenizer(openai.TokenizerConfig{Timeout: 5 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}

	fmt.Println(tokenizer.Count("Boats leave at high tide."))
	server.Close() // from the cache, and estimated
	fmt.Println(tokenizer.Count("Boats leave at high tide."))
	fmt.Println(tokenizer.Count("They return at low tide."))
	// Output:
	// 5
	// 5
	// 6
}
