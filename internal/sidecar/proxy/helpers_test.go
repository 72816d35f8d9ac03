package proxy_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/base/budget"
	"github.com/ragpilot/ragpilot/internal/sidecar/cloudcache"
	"github.com/ragpilot/ragpilot/internal/sidecar/compat/recorded"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
	"github.com/ragpilot/ragpilot/internal/sidecar/tenant"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// engine is a scripted upstream, a named fake: it answers and keeps what it got.
type engine struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	heads  []http.Header
	answer http.HandlerFunc // nil: a small completion
}

func newEngine(t testing.TB) *engine {
	e := &engine{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		e.mu.Lock()
		e.bodies, e.heads = append(e.bodies, string(text)), append(e.heads, r.Header.Clone())
		answer := e.answer
		e.mu.Unlock()
		if answer != nil {
			answer(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(
			w, `{"choices":[{"message":{"role":"assistant","content":"ok"}}],"usage":{"prompt_tokens":100,"completion_tokens":5,`+
				`"total_tokens":105,"prompt_tokens_details":{"cached_tokens":64}}}`,
		)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *engine) last() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.bodies) == 0 {
		return ""
	}
	return e.bodies[len(e.bodies)-1]
}

// index stands in for the reference's endpoints, a named fake.
type index struct {
	mu      sync.Mutex
	tracked []string
	ttft    int
	chars   int
}

func (*index) HasIndex(string) bool { return true }
func (x *index) Track(_, id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.tracked = append(x.tracked, id)
}

func (x *index) RecordTTFT(_ string, _ time.Duration, chars int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ttft++
	x.chars += chars
}

func newProxy(t testing.TB, e *engine, change func(*proxy.Options)) *proxy.Proxy {
	t.Helper()
	base, err := url.Parse(e.URL)
	if err != nil {
		t.Fatal(err)
	}
	pilot, err := contextpilot.New(
		contextpilot.Config{Dedup: contextpilot.DedupOff, Notes: contextpilot.Notes{Hint: contextpilot.HintNone}},
	)
	if err != nil {
		t.Fatal(err)
	}
	o := proxy.Options{Upstream: base, Pilot: pilot, Memory: budget.New(0)}
	if change != nil {
		change(&o)
	}
	o.Compat = recorded.NewResults(o.Memory, o.MaxTenants)
	p, err := proxy.New(complete(o))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// post sends a body as a client of the tenant.
func post(p http.Handler, path, name, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(tenant.With(context.Background(), name), http.MethodPost, path, strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

// get asks as a client of the tenant.
func get(p http.Handler, path, name string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(tenant.With(context.Background(), name), http.MethodGet, path, http.NoBody)
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

const chatPath = "/v1/chat/completions"

// chat builds a conversation: a system text, a question, and tool results of the calls t0, t1 and so on.
func chat(system, question string, results ...string) string {
	type m map[string]any
	messages := []m{{"role": "system", "content": system}, {"role": "user", "content": question}}
	for i, r := range results {
		id := fmt.Sprint("t", i)
		messages = append(messages,
			m{"role": "assistant", "content": nil, "tool_calls": []m{
				{"id": id, "type": "function", "function": m{"name": "search", "arguments": "{}"}},
			}},
			m{"role": "tool", "tool_call_id": id, "content": r})
	}
	text, _ := json.Marshal(m{"model": "m", "messages": messages})
	return string(text)
}

// contents returns the text of each message of a body.
func contents(t testing.TB, body string) []string {
	t.Helper()
	var b struct {
		Messages []struct{ Content any }
	}
	if err := json.Unmarshal([]byte(body), &b); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	var out []string
	for _, m := range b.Messages {
		s, _ := m.Content.(string)
		out = append(out, s)
	}
	return out
}

func docs(names ...string) string {
	return "<documents>\n<document>" + strings.Join(names, "</document>\n<document>") + "</document>\n</documents>"
}

// complete sets the options that a proxy needs, as far as a test has not.
func complete(o proxy.Options) proxy.Options {
	if o.Transport == nil {
		o.Transport = proxy.NewTransport(10*time.Second, time.Hour)
	}
	if o.Live == nil {
		o.Live = func() (bool, float64) { return false, 0 }
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Memory == nil {
		o.Memory = budget.New(0)
	}
	if o.RequestID == nil {
		o.RequestID = func(context.Context) string { return "" }
	}
	o.MaxTenants = cmp.Or(o.MaxTenants, 64)
	return o
}

// cancelled is the context of a client that has gone.
func cancelled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// postContext is post with a context.
func postContext(ctx context.Context, p http.Handler, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(body)))
	return w
}

// says sets the answers of an engine that is asked already.
func (e *engine) says(answer http.HandlerFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = answer
}

// lastHead returns the headers of the last request.
func (e *engine) lastHead() http.Header {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.heads[len(e.heads)-1]
}

// anthropicAt is Anthropic at another address, with a key of the server's own.
func anthropicAt(t *testing.T, base *url.URL) *cloudcache.Provider {
	t.Helper()
	return testkit.Must(cloudcache.New(cloudcache.Options{Provider: "anthropic", Base: base, Key: "key"}))(t)
}
