package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/enginetest"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// echo answers with the words of the last message, in the way of one of the engines.
func echo(w http.ResponseWriter, a asked, n int, finalChunk string) {
	var messages []struct{ Content string }
	_ = json.Unmarshal(a.body["messages"], &messages)
	send(w, fmt.Sprintf(`{"id":"chatcmpl-%d","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`, n))
	for _, word := range strings.SplitAfter(messages[len(messages)-1].Content, " ") {
		send(w, strings.Replace(piece(word), "chatcmpl-fake", fmt.Sprintf("chatcmpl-%d", n), 1))
	}
	send(w, stop, finalChunk, "[DONE]")
}

func TestConformance(t *testing.T) {
	kinds := []struct{ name, final string }{
		{"vLLM", usage},
		{"vLLM without token details", `{"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":2,"prompt_tokens_details":null}}`},
		{"llama.cpp", `{"choices":[],"timings":{"cache_n":16,"prompt_n":4,"predicted_n":2}}`},
	}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			enginetest.Run(t, func(t *testing.T) engines.Engine {
				var f *fake
				var engine *openai.Engine
				f, engine = startFake(t, func(w http.ResponseWriter, _ *http.Request, n int) {
					echo(w, f.requests()[n], n, kind.final)
				}, nil)
				return engine
			})
		})
	}
}
