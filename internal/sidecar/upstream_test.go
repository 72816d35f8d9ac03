package sidecar_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// Tenants that send the same prompt share nothing of it in the engine, and each hears of its own loss.
func TestTenantsAreApartInTheEngine(t *testing.T) {
	for _, tokens := range []string{"answer", "tokenize"} {
		e := newKVEngine(t)
		e.publish(t)
		engine := vllmAt(e)
		engine.PromptTokens = tokens
		f := followAs(t, e, nil, func(c *settings.Config) {
			c.CacheSaltKey, c.Engines = "a key that is long enough", []settings.Engine{engine}
		})
		f.ready(t)
		f.ask(t, "red", chatPath, chatOf("apple", ""))
		stored := e.blocks()
		f.ask(t, "blue", chatPath, chatOf("apple", ""))
		if n := e.blocks(); n != 2*stored {
			t.Errorf("%s: %d blocks are cached after the first tenant's prompt, %d after the other's", tokens, stored, n)
		}
		await(t, "all tokens are known", func() bool { return f.caches().Prompts.Learned == 2 })
		e.evict(t, "apple", 0) // that of blue, who was last
		await(t, "it has left the index", func() bool { return f.index(t)["blue"][0] == 0 })
		if n := f.index(t)["red"][0]; n != 1 {
			t.Errorf("%s: %d prompts of the other tenant, want 1", tokens, n)
		}
	}
}

// The engine is sent its own key, and never the client's for this server.
func TestEnginesKey(t *testing.T) {
	engine := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X-Got", r.Header.Get("Authorization")) }),
	)
	defer engine.Close()
	for want, change := range map[string]func(*settings.Config){
		"Bearer engine-key": func(c *settings.Config) { c.InferAPIKey = "engine-key" },
		"Basic dTpw":        func(c *settings.Config) { c.InferAPIURL = strings.Replace(engine.URL, "//", "//u:p@", 1) },
		"":                  func(*settings.Config) {},
	} {
		s := startWhole(t, func(c *settings.Config) {
			c.InferAPIURL, c.Keys = engine.URL, []settings.Key{{Tenant: "a", Key: "client-key"}}
			change(c)
		})
		req, err := http.NewRequestWithContext(
			t.Context(),
			http.MethodPost,
			s.url+"/v1/chat/completions",
			strings.NewReader(docsChat("q", passage("x"), passage("y"))),
		)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer client-key")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := resp.Header.Get("X-Got"); resp.StatusCode != http.StatusOK || got != want {
			t.Errorf("status %d, the engine got %q, want %q", resp.StatusCode, got, want)
		}
	}
}

// blocks is how many the engine has stored.
func (e *kvEngine) blocks() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.hashes)
}
