package openai_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// Do finds endpoints beside the OpenAI API where engines have them, and sends key and headers.
func TestDo(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("Authorization")+" "+r.Header.Get("X-Team")+" "+
			r.Header.Get("Content-Type"))
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte("fine"))
	}))
	t.Cleanup(server.Close)
	for suffix, want := range map[string][]string{
		"":         {"/metrics", "/v1/models"},
		"/p/v1":    {"/p/metrics", "/p/v1/models"},
		"/gateway": {"/gateway/metrics", "/gateway/models"},
	} {
		asked = nil
		engine := newEngine(t, openai.Config{BaseURL: server.URL + suffix, APIKey: "k", Header: http.Header{"X-Team": {"a"}}})
		for _, path := range []string{"/metrics", "/v1/models"} {
			if got, err := engine.Do(t.Context(), http.MethodGet, path, nil); err != nil || string(got) != "fine" {
				t.Fatalf("%q, %v", got, err)
			}
		}
		if _, err := engine.Do(t.Context(), http.MethodPost, "/tokenize?x=1", []byte("{}")); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(asked[:2], ",")
		if w := "GET " + want[0] + " Bearer k a ,GET " + want[1] + " Bearer k a "; got != w {
			t.Errorf("asked %q, want %q", got, w)
		}
		if !strings.HasPrefix(asked[2], "POST ") || !strings.HasSuffix(asked[2], "/tokenize?x=1 Bearer k a application/json") {
			t.Errorf("asked %q", asked[2])
		}
	}
}

func TestDoFails(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/long":
			_, _ = w.Write(make([]byte, 33<<20))
		case "/cut":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("short"))
		default:
			http.Error(w, `{"detail":"no"}`, http.StatusTeapot)
		}
	}))
	t.Cleanup(server.Close)
	engine := newEngine(t, openai.Config{BaseURL: server.URL})
	_, err := engine.Do(t.Context(), http.MethodGet, "/x", nil)
	if status, ok := errors.AsType[*openai.StatusError](err); !ok || status.Code != http.StatusTeapot || status.Message != "no" ||
		!errors.Is(err, engines.ErrRefused) {
		t.Errorf("status: %v", err)
	}
	if _, err = engine.Do(t.Context(), http.MethodGet, "/long", nil); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("long: %v", err)
	}
	if _, err = engine.Do(t.Context(), http.MethodGet, "/cut", nil); !errors.Is(err, engines.ErrInterrupted) {
		t.Errorf("cut off: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	if _, err = engine.Do(ctx, http.MethodGet, "/x", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("late: %v", err)
	}
	gone := newEngine(t, openai.Config{BaseURL: "http://127.0.0.1:1"})
	if _, err = gone.Do(t.Context(), http.MethodGet, "/x", nil); !errors.Is(err, engines.ErrUnreachable) {
		t.Errorf("no server: %v", err)
	}
}

// Events from elsewhere reach the same sinks.
func TestReport(t *testing.T) {
	engine := newEngine(t, openai.Config{BaseURL: "http://127.0.0.1:1"})
	var got []contextpilot.Event
	cancel := engine.Subscribe(func(events ...contextpilot.Event) { got = append(got, events...) })
	engine.Report(contextpilot.Event{Kind: contextpilot.Shrunk, Request: "a", Tokens: 5}, contextpilot.Event{Kind: contextpilot.Cleared})
	engine.Report()
	cancel()
	engine.Report(contextpilot.Event{Kind: contextpilot.Cleared})
	if len(got) != 2 || got[0].Tokens != 5 || got[1].Kind != contextpilot.Cleared {
		t.Errorf("%+v", got)
	}
}
