package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a stand-in for an inference server: no model, only scripted answers. It records what it was asked.
type fake struct {
	URL string

	mu    sync.Mutex
	asked []asked // guarded by mu
}

// asked is one request that the fake got.
type asked struct {
	path   string
	header http.Header
	body   map[string]json.RawMessage
}

// script answers the n-th request, from 0.
type script func(w http.ResponseWriter, r *http.Request, n int)

// startFake starts a fake server and an engine that uses it. change may adapt the engine's configuration.
func startFake(t testing.TB, s script, change func(*openai.Config)) (*fake, *openai.Engine) {
	t.Helper()
	f := &fake{}
	server := httptest.NewServer(f.handler(s))
	t.Cleanup(server.Close)
	f.URL = server.URL
	config := openai.Config{BaseURL: server.URL + "/v1", Model: "fake-model", RetryWait: 1, MaxRetryWait: 1}
	if change != nil {
		change(&config)
	}
	return f, newEngine(t, config)
}

func newEngine(t testing.TB, config openai.Config) *openai.Engine {
	t.Helper()
	engine, err := openai.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	return engine
}

func (f *fake) handler(s script) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		a := asked{path: r.URL.Path, header: r.Header.Clone()}
		if err := json.Unmarshal(raw, &a.body); err != nil {
			http.Error(w, "the body is not JSON", http.StatusBadRequest)
			return
		}
		f.mu.Lock()
		n := len(f.asked)
		f.asked = append(f.asked, a)
		f.mu.Unlock()
		s(w, r, n)
	})
}

func (f *fake) requests() []asked {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

// streams answers with the events, one data line each, then [DONE].
func streams(events ...string) script {
	return func(w http.ResponseWriter, _ *http.Request, _ int) {
		send(w, events...)
		send(w, "[DONE]")
	}
}

// send writes events and lets them go.
func send(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		fmt.Fprintf(w, "data: %s\n\n", e)
	}
	w.(http.Flusher).Flush()
}

// answers sends a fixed body.
func answers(status int, contentType, body string) script {
	return func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// piece is a chunk with text.
func piece(text string) string {
	quoted, _ := json.Marshal(text)
	return `{"id":"chatcmpl-fake","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":` + string(quoted) +
		`},"finish_reason":null}]}`
}

// Chunks that end an answer.
const (
	stop  = `{"id":"chatcmpl-fake","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	usage = `{"id":"chatcmpl-fake","choices":[],"usage":{"prompt_tokens":20,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":16}}}`
)

// question is an ordinary request.
func question(id string) engines.Request {
	return engines.Request{ID: id, Messages: []engines.Message{{Role: engines.User, Content: "Why?"}}}
}

// inMemory starts a fake on a network of its own. The returned function ends everything that was started; it must
// run before the bubble ends.
func inMemory(t *testing.T, s script, change func(*openai.Config)) (*fake, *openai.Engine, func()) {
	t.Helper()
	f := &fake{URL: "http://fake"}
	n := testkit.NewNetwork()
	server := &http.Server{Handler: f.handler(s)}
	go func() { _ = server.Serve(n) }()
	transport := &http.Transport{DialContext: n.Dial}
	config := openai.Config{BaseURL: f.URL, HTTPClient: &http.Client{Transport: transport}}
	if change != nil {
		change(&config)
	}
	return f, newEngine(t, config), func() {
		transport.CloseIdleConnections()
		_ = server.Close()
	}
}

// collect returns a callback that joins the pieces.
func collect(b *strings.Builder) func(string) error {
	return func(piece string) error {
		b.WriteString(piece)
		return nil
	}
}
