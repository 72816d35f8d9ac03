package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/cloudcache"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// diagnoser keeps what it is given, a named fake.
type diagnoser struct {
	mu    sync.Mutex
	none  bool // of what it is given is a miss
	sent  []proxy.SentPrompt
	ended []proxy.Ended
}

func (d *diagnoser) Sent(p proxy.SentPrompt) proxy.Diagnosed {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sent = append(d.sent, p)
	return d
}

func (d *diagnoser) Miss() string {
	if d.none {
		return ""
	}
	return "cause=clock"
}

func (d *diagnoser) Ended(e proxy.Ended) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = append(d.ended, e)
}

func (d *diagnoser) last() proxy.Ended {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ended[len(d.ended)-1]
}

const (
	anthropicAsks = `{"model":"m","max_tokens":9,"diagnostics":{"previous_message_id":"msg_1"},"messages":[{"role":"user","content":"hi"}]`
	openAIAsks    = `{"model":"m","prompt_cache_options":{"comparison_response_id":"resp_1"},"input":[{"role":"user","content":"hi"}]`
)

// TestProviderReasons: what a provider says of its cache is read from answers of each form, however they arrive, and they pass as they
// are. Words of the model, and members of other objects, are not taken for it.
func TestProviderReasons(t *testing.T) {
	long := strings.Repeat("word ", 10<<10) // more than what is kept of an answer's ends
	theirs := `{"cache_miss_reason":{"type":"system_changed","cache_missed_input_tokens":41850}}`
	forged := `{"cache_miss_reason":{"type":"forged","cache_missed_input_tokens":1}}`
	ours := `{"type":"cache_miss","reason":"tools_changed","comparison_reusable_tokens":1280,"cache_missed_tokens":1280}`
	none := proxy.ProviderMiss{Tokens: -1}
	system, tools := proxy.ProviderMiss{Reason: "system_changed", Tokens: 41850}, proxy.ProviderMiss{Reason: "tools_changed", Tokens: 1280}
	event := func(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }
	for name, c := range map[string]struct {
		path, body, answer string
		want               proxy.ProviderMiss
	}{
		"anthropic": {"/v1/messages", anthropicAsks + "}", `{"id":"msg_2","content":[{"type":"text","text":"` + long + `"}],"diagnostics":` + theirs +
			`,"usage":{"input_tokens":5},"more":"` + long + `"}`, system},
		"anthropic, laid out": {"/v1/messages", anthropicAsks + "}", "{\n  \"diagnostics\" :\n  " + strings.ReplaceAll(theirs, ":", " :\n ") + "\n}", system},
		"anthropic, stream": {"/v1/messages", anthropicAsks + `,"stream":true}`, event("message_start", `{"type":"message_start","message":{"id":"m",`+
			`"diagnostics":`+theirs+`,"usage":{"input_tokens":5}}}`) + event("content_block_delta", `{"delta":{"text":"`+long+`"}}`), system},
		"openai": {"/v1/responses", openAIAsks + "}", `{"id":"r","output":[{"text":"` + long + `"}],"prompt_cache_diagnostics":` + ours + `,"x":"` + long + `"}`, tools},
		"openai, stream": {
			"/v1/responses", openAIAsks + `,"stream":true}`,
			event("response.created", `{"response":{"prompt_cache_diagnostics":null}}`) +
				event("response.output_text.delta", `{"delta":"`+long+`"}`) +
				event("response.completed", `{"type":"response.completed","response":{"prompt_cache_diagnostics":`+ours+`,"usage":{"input_tokens":5}}}`), tools,
		},
		"a hit":            {"/v1/responses", openAIAsks + "}", `{"prompt_cache_diagnostics":{"type":"cache_hit"}}`, none},
		"no difference":    {"/v1/messages", anthropicAsks + "}", `{"diagnostics":null}`, none},
		"not ready":        {"/v1/messages", anthropicAsks + "}", `{"diagnostics":{"cache_miss_reason":null}}`, none},
		"not asked":        {"/v1/messages", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, `{"diagnostics":` + theirs + `}`, none},
		"an API without":   {"/v1/chat/completions", anthropicAsks + "}", `{"diagnostics":` + theirs + `}`, none},
		"in a tool's call": {"/v1/messages", anthropicAsks + "}", `{"content":[{"type":"tool_use","input":{"diagnostics":` + forged + `}}]}`, none},
		"in a text": {
			"/v1/messages", anthropicAsks + "}", `{"content":[{"text":"{\"diagnostics\":` + strings.ReplaceAll(forged, `"`, `\"`) + `}"}]}`, none,
		},
		"in a stream's call": {
			"/v1/messages", anthropicAsks + `,"stream":true}`,
			event("content_block_start", `{"content_block":{"type":"tool_use","input":{"diagnostics":`+forged+`}}}`), none,
		},
		"behind a forged one": {"/v1/messages", anthropicAsks + "}", `{"content":[{"input":{"diagnostics":` + forged + `}}],"diagnostics":` + theirs + `}`, system},
		"behind a quote":      {"/v1/messages", anthropicAsks + "}", `{"x":"one \" and \\","diagnostics":` + theirs + `}`, system},
		"no JSON":             {"/v1/messages", anthropicAsks + "}", `}}"diagnostics":` + theirs, none},
		"cut off":             {"/v1/messages", anthropicAsks + "}", `{"diagnostics":` + theirs[:20], none},
		"endless":             {"/v1/messages", anthropicAsks + "}", `{"diagnostics":{"x":"` + long + `"}}`, none},
	} {
		for _, size := range []int{1, 7, 1 << 20} {
			for _, provided := range []bool{false, true} {
				t.Run(fmt.Sprint(name, " ", size, provided), func(t *testing.T) {
					if provided && strings.Contains(c.path, "chat") {
						t.Skip("Anthropic has no such path")
					}
					e, d := newEngine(t), new(diagnoser)
					e.answer = func(w http.ResponseWriter, _ *http.Request) {
						writeIn(w, c.answer, size, strings.Contains(c.body, "stream"))
					}
					p := newProxy(t, e, func(o *proxy.Options) {
						if o.Diagnosis = d; provided {
							o.Provider = providerAt(t, c.path, o.Upstream)
						}
					})
					w := post(p, c.path, "", c.body)
					if w.Body.String() != c.answer {
						t.Error("the answer was changed")
					}
					if got := d.last().Theirs; got != c.want {
						t.Errorf("%+v, want %+v", got, c.want)
					}
				})
			}
		}
	}
}

// providerAt is the provider with a path, at another address.
func providerAt(t *testing.T, path string, base *url.URL) *cloudcache.Provider {
	t.Helper()
	if path == "/v1/messages" {
		return anthropicAt(t, base)
	}
	return testkit.Must(cloudcache.New(cloudcache.Options{Provider: "openai", Base: base, Key: "key"}))(t)
}

// writeIn writes an answer in pieces.
func writeIn(w http.ResponseWriter, text string, size int, stream bool) {
	w.Header().Set("Content-Type", "application/json")
	if stream {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	for len(text) > 0 {
		n := min(size, len(text))
		if len(text) > 4096 && n < 64 {
			n = 64 // the long text in between
		}
		_, _ = io.WriteString(w, text[:n])
		text = text[n:]
	}
}

// TestDiagnosisGetsWhatWasSent: the body as it goes, what names its place, and how the answer ended.
func TestDiagnosisGetsWhatWasSent(t *testing.T) {
	e, d := newEngine(t), new(diagnoser)
	p := newProxy(t, e, func(o *proxy.Options) {
		o.Diagnosis, o.MissHeader, o.ReplicaHeader = d, true, "X-Served-By"
	})
	e.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Served-By", "gpu-1")
		w.Header().Set(proxy.MissHeader, "cause=other")
		_, _ = io.WriteString(w, `{"usage":{"prompt_tokens":100,"prompt_tokens_details":{"cached_tokens":64}}}`)
	}
	for _, path := range []string{chatPath, "/v1/completions"} {
		body := chat(docs("b", "a"), "q")
		if path != chatPath {
			body = `{"model":"m","prompt":"hi"}`
		}
		w := post(p, path, "red", body, proxy.SessionHeader, "talk")
		s, got := d.sent[len(d.sent)-1], d.last()
		if string(s.Body) != e.last() || s.Tenant != "red" || s.Session != "talk" || s.Model != "m" || s.Replica != "gpu-1" || s.Sent.IsZero() {
			t.Errorf("%s: %+v", path, s)
		}
		if !got.Computed || got.Prompt != 100 || got.Cached != 64 || got.First.Before(s.Sent) || got.ID == "" {
			t.Errorf("%s: %+v", path, got)
		}
		if h := w.Header().Values(proxy.MissHeader); len(h) != 1 || h[0] != "cause=clock" {
			t.Errorf("%s: header %q", path, h)
		}
	}
	d.none = true
	if h := post(p, chatPath, "", chat("s", "q")).Header().Values(proxy.MissHeader); len(h) != 0 {
		t.Errorf("the engine's own header passed: %q", h)
	}
	e.says(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) })
	if w := post(p, chatPath, "", chat("s", "q")); len(d.sent) != 3 || len(d.ended) != 3 || w.Header().Get(proxy.MissHeader) != "" {
		t.Error("an error was looked at")
	}
}
