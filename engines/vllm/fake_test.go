package vllm_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/engines/vllm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a stand-in for a vLLM server: scripted answers, in the form that vLLM 0.32.0 gave, and no model. What is empty
// in it is not there.
type fake struct {
	URL string

	version  string // of /version
	schema   string // of /openapi.json
	sources  string // of /kv_event_sources
	metrics  string // of /metrics
	reset    string // of /reset_prefix_cache
	sick     bool   // /health says so
	details  bool   // started with --enable-prompt-tokens-details
	otherIDs bool   // does not take request IDs

	mu    sync.Mutex
	chats []chat // guarded by mu
}

type chat struct {
	header http.Header
	body   map[string]json.RawMessage
}

func (f *fake) last(t *testing.T) chat {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.chats) == 0 {
		t.Fatal("no chat was sent")
	}
	return f.chats[len(f.chats)-1]
}

// start starts the fake and an engine that uses it.
func start(t *testing.T, f *fake, change func(*vllm.Config)) *vllm.Engine {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.URL = server.URL
	config := vllm.Config{Server: openai.Config{BaseURL: server.URL, Model: "tiny", RetryWait: 1, MaxRetryWait: 1}}
	if change != nil {
		change(&config)
	}
	engine, err := vllm.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	return engine
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	text := func(s string) {
		if s == "" {
			http.Error(w, `{"detail":"Not Found"}`, http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, s)
	}
	switch r.Method + " " + r.URL.Path {
	case "GET /health":
		if f.sick {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	case "GET /version":
		text(f.version)
	case "GET /openapi.json":
		text(f.schema)
	case "GET /kv_event_sources":
		text(f.sources)
	case "GET /metrics":
		text(f.metrics)
	case "GET /v1/models":
		text(`{"object":"list","data":[{"id":"tiny","object":"model","owned_by":"vllm","root":"/models/tiny","parent":null,"max_model_len":1900,"permission":[]}]}`)
	case "POST /reset_prefix_cache":
		text(f.reset)
	case "POST /tokenize":
		f.tokenize(w, body)
	case "POST /v1/chat/completions":
		f.chat(w, r, body)
	default:
		text("")
	}
}

// words are the fake's tokens: one for each word, its length.
func words(text string) []uint32 {
	var tokens []uint32
	for word := range strings.FieldsSeq(text) {
		tokens = append(tokens, uint32(len(word)))
	}
	return tokens
}

type messages []struct{ Role, Content string }

func (m messages) text() string {
	var b strings.Builder
	for _, one := range m {
		b.WriteString("<|" + one.Role + "|> " + one.Content + " ")
	}
	return b.String() + "<|assistant|>"
}

func (f *fake) tokenize(w http.ResponseWriter, body []byte) {
	var q struct {
		Prompt   string   `json:"prompt"`
		Messages messages `json:"messages"`
		Special  *bool    `json:"add_special_tokens"`
	}
	if err := json.Unmarshal(body, &q); err != nil || q.Messages == nil && (q.Special == nil || *q.Special) {
		http.Error(w, `{"error":{"message":"bad question"}}`, http.StatusBadRequest)
		return
	}
	text := q.Prompt
	if q.Messages != nil {
		text = q.Messages.text()
	}
	tokens, _ := json.Marshal(words(text))
	fmt.Fprintf(w, `{"count":%d,"max_model_len":1900,"tokens":%s,"token_strs":null}`, len(words(text)), tokens)
}

func (f *fake) chat(w http.ResponseWriter, r *http.Request, body []byte) {
	c := chat{header: r.Header.Clone()}
	if err := json.Unmarshal(body, &c.body); err != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	n := len(f.chats)
	f.chats = append(f.chats, c)
	f.mu.Unlock()
	var said messages
	_ = json.Unmarshal(c.body["messages"], &said)
	id := "chatcmpl-" + r.Header.Get("X-Request-Id")
	if f.otherIDs {
		id = fmt.Sprintf("chatcmpl-%032x", n)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(format string, args ...any) {
		fmt.Fprintf(w, `data: {"id":%s,"object":"chat.completion.chunk","created":1795293063,"model":"tiny",`+format+"}\n\n", append([]any{quote(id)}, args...)...)
	}
	tokens := ""
	if string(c.body["return_token_ids"]) == "true" {
		ids, _ := json.Marshal(words(said.text()))
		tokens = fmt.Sprintf(`,"prompt_token_ids":%s,"prompt_text":null`, ids)
	}
	event(`"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]%s`, tokens)
	answer := strings.SplitAfter(said[len(said)-1].Content, " ")
	for _, word := range answer {
		event(`"choices":[{"index":0,"delta":{"content":%s},"logprobs":null,"finish_reason":null,"token_ids":[343]}]`, quote(word))
	}
	event(`"choices":[{"index":0,"delta":{"content":""},"logprobs":null,"finish_reason":"length","stop_reason":null}]`)
	details := "null"
	if f.details {
		details = fmt.Sprintf(`{"cached_tokens":%d,"created_cache_tokens":0}`, min(n, 1)*len(words(said.text()))/2)
	}
	event(`"choices":[],"usage":{"prompt_tokens":%d,"total_tokens":11,"completion_tokens":%d,"prompt_tokens_details":%s},"system_fingerprint":"vllm-0.32.0-5ded657f"`,
		len(words(said.text())), len(answer), details)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func quote(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

func question(id string) engines.Request {
	return engines.Request{ID: id, Messages: []engines.Message{{Role: engines.User, Content: "When do boats leave?"}}}
}

// soon bounds tests that ask a server that is not there.
const soon = 5 * time.Second
