package langchain_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/langchain"
)

// langchaingo's own OpenAI client behind the wrapper, against a server that answers as vLLM does: the request ID goes
// out, the cached tokens come back, streamed or not.
func TestOpenAIClient(t *testing.T) {
	const usage = `"usage":{"prompt_tokens":50,"completion_tokens":2,"total_tokens":52,"prompt_tokens_details":{"cached_tokens":32}}`
	var id string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id = r.Header.Get("X-Request-Id")
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if !strings.Contains(string(body), `"stream":true`) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}],%s}`, usage)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range []string{
			`{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`,
			`{"choices":[{"index":0,"delta":{"content":"Yes."}}]}`,
			`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
			`{"choices":[],` + usage + `}`, "[DONE]",
		} {
			_, _ = fmt.Fprintf(w, "data: %s\n\n", event)
		}
	}))
	defer server.Close()
	llm, err := openai.New(openai.WithBaseURL(server.URL), openai.WithToken("none"), openai.WithModel("m"),
		openai.WithHTTPClient(&http.Client{Transport: langchain.Transport(server.Client().Transport)}))
	if err != nil {
		t.Fatal(err)
	}
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprintf("stream=%v", stream), func(t *testing.T) {
			pilot := newPilot(t, contextpilot.Config{})
			plan, text := hold(pilot, "s", "a", "b")
			var options []llms.CallOption
			var chunks strings.Builder
			if stream {
				options = append(options, llms.WithStreamingFunc(func(_ context.Context, chunk []byte) error {
					chunks.Write(chunk)
					return nil
				}))
			}
			got := generate(in("s"), t, langchain.Wrap(pilot, llm), []llms.MessageContent{human(text)}, options...)
			if got != "Yes." || stream && chunks.String() != "Yes." {
				t.Errorf("answer %q, streamed %q", got, chunks.String())
			}
			if id != plan.RequestID {
				t.Errorf("request ID %q, want %q", id, plan.RequestID)
			}
			if st := pilot.Stats(); st.PrefixReported != 32 || st.LiveRequests != 1 {
				t.Errorf("%+v", st)
			}
		})
	}
}
