package sglang_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/engines/sglang"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a stand-in for an SGLang server: scripted answers, in the form that SGLang 0.5.23's source gives them, and no
// model. What is empty in it is not there.
type fake struct {
	URL string

	info    string // of /server_info
	oldInfo string // of /get_server_info
	schema  string // of /openapi.json
	metrics string // of /metrics
	flush   int    // status of /flush_cache; 0: not there
	sick    bool   // /health says so
	report  bool   // started with --enable-cache-report
	otherID bool   // does not take rid

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
func start(t *testing.T, f *fake, change func(*sglang.Config)) *sglang.Engine {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.URL = server.URL
	config := sglang.Config{Server: openai.Config{BaseURL: server.URL, Model: "tiny", RetryWait: 1, MaxRetryWait: 1}}
	if change != nil {
		change(&config)
	}
	engine, err := sglang.New(config)
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
	case "GET /server_info":
		text(f.info)
	case "GET /get_server_info":
		text(f.oldInfo)
	case "GET /openapi.json":
		text(f.schema)
	case "GET /metrics":
		text(f.metrics)
	case "GET /v1/models":
		text(`{"object":"list","data":[{"id":"tiny","object":"model","owned_by":"vllm","root":"/models/tiny","parent":null,"max_model_len":1900,"permission":[]}]}`)
	case "POST /flush_cache":
		if f.flush == 0 {
			f.flush = http.StatusNotFound
		}
		w.WriteHeader(f.flush)
		_, _ = io.WriteString(w, "Cache flushed.\n")
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
	var id string
	_ = json.Unmarshal(c.body["rid"], &id)
	if f.otherID {
		id = fmt.Sprintf("%032x", n)
	}
	prompt := words(said.text())
	answer := strings.SplitAfter(said[len(said)-1].Content, " ")
	details := "null"
	if f.report {
		details = fmt.Sprintf(`{"cached_tokens":%d}`, min(n, 1)*len(prompt)/2)
	}
	usage := fmt.Sprintf(`{"prompt_tokens":%d,"total_tokens":11,"completion_tokens":%d,"prompt_tokens_details":%s}`, len(prompt), len(answer), details)
	wantsTokens := string(c.body["return_prompt_token_ids"]) == "true"
	if string(c.body["stream"]) == "true" {
		if wantsTokens {
			http.Error(w, `{"object":"error","message":"return_prompt_token_ids is not supported with streaming. Please set stream=false when using return_prompt_token_ids=true."}`, http.StatusBadRequest)
			return
		}
		stream(w, id, answer, usage)
		return
	}
	if c.body["stream_options"] != nil {
		http.Error(w, `{"object":"error","message":"stream_options without a stream"}`, http.StatusBadRequest)
		return
	}
	tokens := ""
	if wantsTokens {
		ids, _ := json.Marshal(prompt)
		tokens = fmt.Sprintf(`,"prompt_token_ids":%s`, ids)
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"id":%s,"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"length"%s}],"usage":%s}`,
		quote(id), quote(strings.Join(answer, "")), tokens, usage)
}

func stream(w http.ResponseWriter, id string, answer []string, usage string) {
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(rest string) {
		fmt.Fprintf(w, `data: {"id":%s,"object":"chat.completion.chunk","created":1795293063,"model":"tiny",%s}`+"\n\n", quote(id), rest)
	}
	event(`"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]`)
	for _, word := range answer {
		event(fmt.Sprintf(`"choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}]`, quote(word)))
	}
	event(`"choices":[{"index":0,"delta":{},"finish_reason":"length"}]`)
	event(`"choices":[],"usage":` + usage)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func quote(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

func question(id string) engines.Request {
	return engines.Request{ID: id, Messages: []engines.Message{{Role: engines.User, Content: "When do boats leave?"}}}
}
