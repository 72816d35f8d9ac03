package selfhosted_test

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
	"github.com/ragpilot/ragpilot/engines/internal/selfhosted"
	"github.com/ragpilot/ragpilot/engines/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kind is a kind of server, as the tests see it.
type kind struct {
	name    string
	dialect *selfhosted.Dialect
	sglang  bool
	tokens  string            // the member that asks for the prompt's tokens
	answers map[string]string // of a recent release with everything
}

// kinds are the servers of which every test is true.
var kinds = []kind{
	{"vllm", selfhosted.VLLM, false, "return_token_ids", map[string]string{
		"/version": `{"version":"0.32.0"}`, "/openapi.json": vllmSchema, "/kv_event_sources": vllmSources, "/metrics": vllmMetrics,
		"/reset_prefix_cache": `{"success":true}`,
	}},
	{"sglang", selfhosted.SGLang, true, "return_prompt_token_ids", map[string]string{
		"/server_info": sglangInfo, "/openapi.json": sglangSchema, "/metrics": sglangMetrics, "/flush_cache": "Cache flushed.\n",
	}},
}

// eachKind runs a test of each kind of server.
func eachKind(t *testing.T, test func(t *testing.T, k kind)) {
	t.Helper()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) { test(t, k) })
	}
}

// fake is a stand-in for a server: scripted answers, in the form of vLLM 0.32.0 or of SGLang 0.5.23's source, and no model.
type fake struct {
	kind     kind
	answers  map[string]string // by path; other paths are not there
	status   int               // of POST requests with a scripted answer; 0: 200
	sick     bool              // /health reports it
	counts   bool              // started so that cached tokens are reported
	otherIDs bool              // does not take request IDs

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
func start(t *testing.T, f *fake, change func(*selfhosted.Config)) *selfhosted.Engine {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	config := selfhosted.Config{Server: openai.Config{BaseURL: server.URL, Model: "tiny", RetryWait: 1, MaxRetryWait: 1}}
	if change != nil {
		change(&config)
	}
	engine, err := selfhosted.New(f.kind.dialect, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	return engine
}

// detected starts the fake and an engine that has detected what it can do.
func detected(t *testing.T, f *fake, change func(*selfhosted.Config)) *selfhosted.Engine {
	t.Helper()
	engine := start(t, f, change)
	if _, err := engine.Detect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return engine
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	switch r.URL.Path {
	case "/health":
		if f.sick {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	case "/v1/models":
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"tiny","object":"model","owned_by":"vllm","root":"/models/tiny","parent":null,"max_model_len":1900,"permission":[]}]}`)
	case "/tokenize":
		f.tokenize(w, body)
	case "/v1/chat/completions":
		f.chat(w, r, body)
	default:
		answer := f.answers[r.URL.Path]
		if answer == "" {
			http.Error(w, `{"detail":"Not Found"}`, http.StatusNotFound)
			return
		}
		if r.Method == http.MethodPost && f.status != 0 {
			w.WriteHeader(f.status)
		}
		_, _ = io.WriteString(w, answer)
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
	fmt.Fprintf(w, `{"count":%d,"max_model_len":1900,"tokens":%s,"token_strs":null}`, len(words(text)), asJSON(words(text)))
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
	var id string
	_ = json.Unmarshal(c.body["rid"], &id)
	if !f.kind.sglang {
		id = "chatcmpl-" + r.Header.Get("X-Request-Id")
	}
	if f.otherIDs {
		id = fmt.Sprintf("chatcmpl-%032x", n)
	}
	prompt := words(said.text())
	answer := strings.SplitAfter(said[len(said)-1].Content, " ")
	details := "null"
	if f.counts {
		details = fmt.Sprintf(`{"cached_tokens":%d}`, min(n, 1)*len(prompt)/2)
	}
	usage := fmt.Sprintf(`{"prompt_tokens":%d,"total_tokens":11,"completion_tokens":%d,"prompt_tokens_details":%s}`, len(prompt),
		len(answer), details)
	tokens := ""
	if string(c.body[f.kind.tokens]) == "true" {
		tokens = `,"prompt_token_ids":` + asJSON(prompt)
	}
	if string(c.body["stream"]) == "true" {
		if f.kind.sglang && tokens != "" {
			http.Error(w, `{"object":"error","message":"return_prompt_token_ids is not supported with streaming. Please set stream=false when using return_prompt_token_ids=true."}`, http.StatusBadRequest)
			return
		}
		stream(w, id, answer, tokens, usage)
		return
	}
	if c.body["stream_options"] != nil {
		http.Error(w, `{"object":"error","message":"stream_options without a stream"}`, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"id":%s,"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"length"%s}],"usage":%s}`,
		asJSON(id), asJSON(strings.Join(answer, "")), tokens, usage)
}

func stream(w http.ResponseWriter, id string, answer []string, tokens, usage string) {
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(rest string) {
		fmt.Fprintf(w, `data: {"id":%s,"object":"chat.completion.chunk","created":1795293063,"model":"tiny",%s}`+"\n\n", asJSON(id), rest)
	}
	event(`"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]` + tokens)
	for _, word := range answer {
		event(fmt.Sprintf(`"choices":[{"index":0,"delta":{"content":%s},"finish_reason":null,"token_ids":[343]}]`, asJSON(word)))
	}
	event(`"choices":[{"index":0,"delta":{"content":""},"finish_reason":"length","stop_reason":null}]`)
	event(`"choices":[],"usage":` + usage)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func asJSON(v any) string {
	raw, _ := json.Marshal(v)
	return string(raw)
}

func question(id string) engines.Request {
	return engines.Request{ID: id, Messages: []engines.Message{{Role: engines.User, Content: "When do boats leave?"}}}
}

// soon is the timeout of tests that ask a server that is not there.
const soon = 5 * time.Second
