package proxy_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

// follower follows every prompt and notes how each ended, a named fake.
type follower struct {
	mu     sync.Mutex
	bodies []string
	ended  []bool
}

func (*follower) Follows(string) bool { return true }
func (f *follower) Follow(p proxy.Prompt) proxy.Followed {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bodies = append(f.bodies, string(p.Body))
	return f
}
func (*follower) Sent() (member, value string, header http.Header) { return "", "", nil }
func (*follower) Answer(*http.Response)                            {}
func (f *follower) Ended(computed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = append(f.ended, computed)
}

// A plain completion that fails is reported once, as a chat that fails is, wherever it fails.
func TestFailedCompletions(t *testing.T) {
	short := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte(`{"choices":[`)) // and no more: the connection breaks
	}
	for name, answer := range map[string]http.HandlerFunc{
		"the upstream is gone":   nil,
		"the answer breaks off":  short,
		"the upstream's own 500": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
	} {
		t.Run(name, func(t *testing.T) {
			e, rep, caches := newEngine(t), newReports(), &follower{}
			e.answer = answer
			p := newProxy(t, e, func(o *proxy.Options) { o.Recorder, o.Index, o.Caches = rep, &index{}, caches })
			if answer == nil {
				e.Close()
			}
			front := httptest.NewServer(p)
			defer front.Close()
			//nolint:bodyclose // by t.Cleanup
			resp := send(t.Context(), t, front, "/v1/completions", `{"model":"m","prompt":"p","rid":"R"}`)
			if resp.StatusCode < http.StatusInternalServerError {
				t.Errorf("status %d", resp.StatusCode)
			}
			if r := rep.wait(t); !r.Failed || r.ID != "R" || r.Model != "m" || r.Path != "/v1/completions" || r.Total <= 0 {
				t.Errorf("%+v", r)
			}
			front.Close() // all has ended
			if diff := cmp.Diff([]bool{false}, caches.ended); diff != "" {
				t.Errorf("followed (-want +got):\n%s", diff)
			}
			if n := len(rep.all); n != 1 {
				t.Errorf("%d reports, want one", n)
			}
		})
	}
}
