package upstream_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/internal/lab/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start serves the options and returns our own client for them.
func start(t testing.TB, o upstream.Options, change func(*openai.Config)) *openai.Engine {
	t.Helper()
	server := httptest.NewServer(upstream.New(o))
	t.Cleanup(server.Close)
	config := openai.Config{BaseURL: server.URL, Model: "m", HTTPClient: server.Client(), Retries: -1}
	if change != nil {
		change(&config)
	}
	engine, err := openai.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// ask sends one user message.
func ask(t testing.TB, e *openai.Engine, id, text string, maxTokens int) engines.Response {
	t.Helper()
	response, err := e.Generate(t.Context(), engines.Request{
		ID: id, MaxTokens: maxTokens, Messages: []engines.Message{{Role: engines.User, Content: text}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// post sends a body to a handler, without a network.
func post(ctx context.Context, h http.Handler, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// object decodes a JSON object.
func object(t testing.TB, r io.Reader) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.NewDecoder(r).Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// nothingStreamed asks the openai client for answers that are not streamed.
func nothingStreamed(c *openai.Config) {
	c.Extra = map[string]json.RawMessage{"stream": json.RawMessage("false"), "stream_options": nil}
}
