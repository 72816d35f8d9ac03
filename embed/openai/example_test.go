package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/embed/openai"
)

func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // stands for a real one
		var request struct{ Input []string }
		_ = json.NewDecoder(r.Body).Decode(&request)
		data := []map[string]any{}
		for i, text := range request.Input {
			data = append(data, map[string]any{"index": i, "embedding": []int{len(text), 1}})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	defer server.Close()

	remote, err := openai.New(openai.Options{URL: server.URL + "/v1", Model: "bge-small-en-v1.5"})
	if err != nil {
		log.Fatal(err)
	}
	e := embed.Cached(remote, 10_000)
	vectors, err := e.EmbedDocuments(context.Background(), []string{"Ana plays the violin.", "A fox."})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(vectors)
	// Output: [[21 1] [6 1]]
}
