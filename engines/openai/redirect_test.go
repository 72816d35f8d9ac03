package openai_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines/openai"
)

// An engine that redirects to another port gets an answer from there, but the one who listens there does not get the API key.
func TestRedirectKeepsTheKey(t *testing.T) {
	for name, elsewhere := range map[string]bool{"another port": true, "the same address": false} {
		t.Run(name, func(t *testing.T) {
			const key = "Bearer secret"
			seen := make(chan string, 1)
			answer := func(w http.ResponseWriter, r *http.Request) {
				seen <- r.Header.Get("Authorization")
				_, _ = w.Write([]byte(`{"data":[]}`))
			}
			other := httptest.NewServer(http.HandlerFunc(answer))
			defer other.Close()
			mux := http.NewServeMux()
			mux.HandleFunc("/new", answer)
			mux.HandleFunc("/v1/models", func(w http.ResponseWriter, r *http.Request) {
				if got := r.Header.Get("Authorization"); got != key {
					t.Errorf("the engine gets the key %q", got)
				}
				to := "/new"
				if elsewhere {
					to = other.URL
				}
				http.Redirect(w, r, to, http.StatusTemporaryRedirect)
			})
			server := httptest.NewServer(mux)
			defer server.Close()
			engine, err := openai.New(openai.Config{BaseURL: server.URL, APIKey: "secret"})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = engine.Close() }()
			if _, err := engine.Do(t.Context(), http.MethodGet, "/v1/models", nil); err != nil {
				t.Fatal(err)
			}
			want := key
			if elsewhere {
				want = ""
			}
			if got := <-seen; got != want {
				t.Errorf("the address of the redirect gets the key %q, want %q", got, want)
			}
		})
	}
}

// A redirect that makes a GET of the request is refused: what a GET brings is no answer.
func TestRedirectLosesTheRequest(t *testing.T) {
	var got []string
	mux := http.NewServeMux()
	mux.Handle("/v1/chat/completions", http.RedirectHandler("/elsewhere", http.StatusFound))
	mux.HandleFunc("/elsewhere", func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Method) })
	server := httptest.NewServer(mux)
	defer server.Close()
	engine, err := openai.New(openai.Config{BaseURL: server.URL, Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = engine.Close() }()
	_, err = engine.Generate(t.Context(), question("req-1"), nil)
	if err == nil || !strings.Contains(err.Error(), server.URL+"/elsewhere") || len(got) > 0 {
		t.Errorf("got %v, and the other address got %v", err, got)
	}
}
