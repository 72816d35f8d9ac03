package wiretest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/internal/testkit"
)

// engine is a fake upstream: it answers what a test sets and keeps what it got.
type engine struct {
	url string

	mu    sync.Mutex
	reply *Reply // guarded by mu
	got   []any  // guarded by mu
}

// newEngine starts an engine, or finds an address that refuses connections.
func newEngine(t testing.TB, down bool) *engine {
	t.Helper()
	e := &engine{}
	if down {
		e.url = "http://" + testkit.FreeAddress(t)
		return e
	}
	e.url = Serve(t, e)
	return e
}

// Serve runs a handler until the test ends and returns its base address.
func Serve(t testing.TB, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// expect sets the next answer and forgets what was received.
func (e *engine) expect(r *Reply) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reply, e.got = r, nil
}

func (e *engine) received() []any {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.got
}

// ServeHTTP records a request in the shape of Step.UpstreamReceived, with all its headers.
func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // what did not arrive will be missed
	var parsed any
	if err := json.Unmarshal(body, &parsed); err != nil && len(body) > 0 {
		parsed = map[string]any{"__text__": string(body)}
	}
	headers := map[string]any{}
	for name := range r.Header {
		headers[strings.ToLower(name)] = r.Header.Get(name)
	}
	e.mu.Lock()
	e.got = append(e.got, map[string]any{"method": r.Method, "path": r.URL.RequestURI(), "headers": headers, "json": parsed})
	reply := e.reply
	e.mu.Unlock()
	if reply == nil {
		http.Error(w, "wiretest: the recorded engine was not asked", http.StatusTeapot)
		return
	}
	reply.write(w)
}

func (r *Reply) write(w http.ResponseWriter) {
	for name, v := range r.Headers {
		w.Header().Set(name, v)
	}
	w.WriteHeader(r.Status)
	switch {
	case r.Chunks != nil:
		for _, c := range r.Chunks {
			_, _ = io.WriteString(w, c) // the proxy went away: its answer will show
			_ = http.NewResponseController(w).Flush()
		}
	case r.Body != nil:
		_, _ = io.WriteString(w, *r.Body)
	default:
		_ = json.NewEncoder(w).Encode(r.JSON)
	}
}
