package sidecar_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/mem0"
)

// as is a client that is a tenant's.
type as string

func (name as) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Test-Tenant", string(name))
	return http.DefaultTransport.RoundTrip(r)
}

func memoriesOf(t *testing.T, l live, tenant string) memory.Store {
	t.Helper()
	return testkit.Must(mem0.New(l.front.URL, mem0.Options{Dialect: mem0.Hosted, HTTP: &http.Client{Transport: as(tenant)}}))(t)
}

var ana = memory.Scope{User: "ana"}

func remember(t *testing.T, s memory.Store, text string) []memory.Change {
	t.Helper()
	return testkit.Must(s.Add(t.Context(), ana, []memory.Message{{Role: memory.User, Content: text}}, memory.AddOptions{}))(t)
}

// recall asks what a tenant's store has of Ana.
func recall(t *testing.T, s memory.Store) (found []string) {
	t.Helper()
	hits, err := s.Search(t.Context(), ana, "what does Ana keep?", 5, memory.SearchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hits {
		found = append(found, h.Memory.Text)
	}
	return found
}

// Memories are kept over a restart, each tenant's apart, and go when the tenant is forgotten; /v1 still goes to the engine.
func TestMemories(t *testing.T) {
	dir := t.TempDir()
	keep := func(c *settings.Config) { c.Memory.Dir, c.Memory.Embedder = dir, "lexical" }
	l := newTenants(t, sidecar.Options{}, keep)
	remember(t, memoriesOf(t, l, "a"), "Ana keeps bees.")
	remember(t, memoriesOf(t, l, "b"), "Ana keeps a parrot.")
	do(t, http.MethodPost, l.front.URL+"/v1/chat/completions", "a", docsChat("what?", passage("x"), passage("y")))
	do(t, http.MethodPost, l.front.URL+"/mem0/search", "a", `{"query":"bees","user_id":"ana"}`)

	l = newTenants(t, sidecar.Options{}, keep)
	a, b := memoriesOf(t, l, "a"), memoriesOf(t, l, "b")
	if got := fmt.Sprint(recall(t, a), recall(t, b)); got != "[Ana keeps bees.] [Ana keeps a parrot.]" {
		t.Error(got)
	}
	do(t, http.MethodPost, l.admin.URL+"/forget?tenant=a", "", "")
	if got := fmt.Sprint(recall(t, a), recall(t, b)); got != "[] [Ana keeps a parrot.]" {
		t.Error(got)
	}
}

// A model is asked for facts only where that is wanted, whatever models are named.
func TestVerbatimAsksNoModel(t *testing.T) {
	l := newTenants(t, sidecar.Options{}, func(c *settings.Config) {
		c.Memory.Dir, c.Memory.Model, c.Memory.Embedder = t.TempDir(), "m", "lexical"
	})
	a := memoriesOf(t, l, "a")
	remember(t, a, "Ana keeps bees.")
	if got := fmt.Sprint(recall(t, a)); got != "[Ana keeps bees.]" {
		t.Error(got)
	}
}

// What a message must be to be remembered is a setting, and infer=False takes it as it is.
func TestWhatIsRemembered(t *testing.T) {
	for extract, want := range map[string]string{
		"": "[I keep bees.]", "verbatim": "[I keep bees.]",
		"everything": "[Hi! I keep bees. And you?]",
	} {
		l := newTenants(t, sidecar.Options{}, func(c *settings.Config) {
			c.Memory.Dir, c.Memory.Extract, c.Memory.Embedder = t.TempDir(), extract, "lexical"
		})
		a := memoriesOf(t, l, "a")
		remember(t, a, "Hi! I keep bees. And you?")
		if got := fmt.Sprint(recall(t, a)); got != want {
			t.Errorf("%q: %s, want %s", extract, got, want)
		}
		if changes, err := a.Add(t.Context(), ana, []memory.Message{{Role: memory.Assistant, Content: "Why?"}},
			memory.AddOptions{Extractor: memory.Everything{}}); err != nil ||
			len(changes) != 1 {
			t.Errorf("%q: a question as it is: %+v, %v", extract, changes, err)
		}
	}
}

// What a forgotten tenant has in the index is gone, and what others have stays.
func TestForgetDropsTheIndex(t *testing.T) {
	l := newTenants(t, sidecar.Options{}, func(*settings.Config) {})
	for _, who := range []string{"a", "b"} {
		do(t, http.MethodPost, l.front.URL+"/reorder", who, `{"contexts":[[1,2,3]]}`)
	}
	do(t, http.MethodPost, l.admin.URL+"/forget?tenant=a", "", "")
	for who, want := range map[string]string{"a": `"mode":"initial"`, "b": `"mode":"incremental"`} {
		if got := do(t, http.MethodPost, l.front.URL+"/reorder", who, `{"contexts":[[1,2,9]]}`); !strings.Contains(got, want) {
			t.Errorf("tenant %s: %s", who, got)
		}
	}
}

// Clients of the index search it where memories are kept, too.
func TestSearchBesideMemories(t *testing.T) {
	l := newTenants(t, sidecar.Options{}, func(c *settings.Config) { c.Memory.Dir, c.Memory.Embedder = t.TempDir(), "lexical" })
	do(t, http.MethodPost, l.front.URL+"/reorder", "a", `{"contexts":[[1,2,3]]}`)
	if got := do(t, http.MethodPost, l.front.URL+"/search", "a", `{"context":[1,2,9],"update_access":true}`); !strings.Contains(
		got,
		`"has_prefix":true,"overlap":2`,
	) {
		t.Error(got)
	}
	remember(t, memoriesOf(t, l, "a"), "Ana keeps bees.")
	if got := do(t, http.MethodPost, l.front.URL+"/search", "a", `{"query":"bees","user_id":"ana"}`); !strings.Contains(
		got,
		"Ana keeps bees.",
	) {
		t.Error(got)
	}
}

// Facts are what the engine's model finds; an engine that fails loses nothing and stores nothing.
func TestMemoriesOfAModel(t *testing.T) {
	answer := `{"memory":[{"text":"Ana keeps bees.","attributed_to":"user"}]}`
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // a fake model
		body, _ := io.ReadAll(r.Body)
		if answer == "" || !strings.Contains(string(body), `"model":"extractor"`) {
			http.Error(w, `{"error":{"message":"no such model"}}`, http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(
			w,
			"data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\ndata: "+
				"{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
			answer,
		)
	}))
	t.Cleanup(engine.Close)
	l := newTenants(t, sidecar.Options{}, func(c *settings.Config) {
		c.InferAPIURL, c.Memory = engine.URL, settings.Memory{Dir: t.TempDir(), Extract: "add-only", Model: "extractor", Embedder: "lexical"}
	})
	s := memoriesOf(t, l, "a")
	if changes := remember(t, s, "Well, you see, there are those bees of mine."); len(changes) != 1 || changes[0].Text != "Ana keeps bees." {
		t.Errorf("%+v", changes)
	}
	answer = ""
	if _, err := s.Add(t.Context(), ana, []memory.Message{{Role: memory.User, Content: "And a parrot."}}, memory.AddOptions{}); err == nil ||
		strings.Contains(err.Error(), engine.URL) {
		t.Errorf("a failing model: %v", err)
	}
	if got := recall(t, s); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

// What Mem0's service has and this server has not is answered here, with memories and without: never by the engine.
func TestMem0RoutesStayHere(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		var seen []string
		engine := httptest.NewServer(
			http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = append(seen, r.URL.Path) }),
		) // a fake engine
		t.Cleanup(engine.Close)
		l := newTenants(t, sidecar.Options{}, func(c *settings.Config) { c.InferAPIURL, c.Memory.Dir = engine.URL, dir })
		want := http.StatusNotFound
		if dir != "" {
			want = http.StatusNotImplemented
		}
		for _, path := range []string{
			"/v1/feedback/", "/v1/feedback", "/v1/exports/get", "/v1/summary/", "/v1/webhooks/projects/p/",
			"/v1/entities/user/", "/v1/entities/a/b/c",
		} {
			for _, prefix := range []string{"", "/mem0"} {
				for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
					req := testkit.Request(t, method, l.front.URL+prefix+path, strings.NewReader("{}"))
					res, err := as("a").RoundTrip(req)
					if err != nil {
						t.Fatal(err)
					}
					_ = res.Body.Close()
					if res.StatusCode != want {
						t.Errorf("memories in %q, %s %s%s: %d, want %d", dir, method, prefix, path, res.StatusCode, want)
					}
				}
			}
		}
		if len(seen) > 0 {
			t.Errorf("the engine was asked for %q", seen)
		}
	}
}
