package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/internal/lab/upstream"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// onReplicas runs bench route on servers of the simulated engine.
func onReplicas(t *testing.T, urls []string, args ...string) (string, error) {
	t.Helper()
	all := append([]string{"bench", "route"}, madeUp()[1:]...)
	all = append(all, "--sessions", "10", "--arrivals", "closed:2", "--arms", "joint,order+least-load", "--max-tokens", "2")
	for _, u := range urls {
		all = append(all, "--engine", u)
	}
	return run(t, append(all, args...)...)
}

// The table says what the replicas are, equal ones together.
func TestRouteSaysWhatTheServersAre(t *testing.T) {
	urls := []string{simulated(t, upstream.Options{}), simulated(t, upstream.Options{}), simulated(t, upstream.Options{Model: "another"})}
	out, err := onReplicas(t, urls)
	if err != nil {
		t.Fatal(err)
	}
	if want := "engines: 2 × sim (ragpilot), 1 × another (ragpilot)\n"; !strings.HasPrefix(out, want) {
		t.Errorf("got\n%swant %s", out, want)
	}
}

// A reset runs before each run, and its failure ends the comparison. With one, prompts are those of the trace.
func TestRouteReset(t *testing.T) {
	var salted atomic.Int64
	server := httptest.NewServer(watch(upstream.New(upstream.Options{}), func(body string) {
		if strings.Contains(body, "Run ") {
			salted.Add(1)
		}
	}))
	defer server.Close()
	log := filepath.Join(t.TempDir(), "log")
	if _, err := onReplicas(t, []string{server.URL}, "--seeds", "2", "--reset", "echo reset >>"+log); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(log); strings.Count(string(text), "reset") != 2*2 {
		t.Errorf("resets for 4 runs:\n%s", text)
	}
	if n := salted.Load(); n > 0 {
		t.Errorf("%d prompts have a first line of their run", n)
	}
	if _, err := onReplicas(t, []string{server.URL}); err != nil || salted.Load() == 0 {
		t.Errorf("without a reset: %v, %d prompts have a first line of their run", err, salted.Load())
	}
	if _, err := onReplicas(t, []string{server.URL}, "--reset", "exit 3"); err == nil ||
		!strings.Contains(err.Error(), `--reset "exit 3": exit status 3`) {
		t.Errorf("a reset that fails: %v", err)
	}
}

// watch shows the bodies of requests.
func watch(to http.Handler, show func(body string)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		show(string(body))
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		to.ServeHTTP(w, r)
	})
}

// What a replica posts is reported by its engine, and by no other.
func TestEvictions(t *testing.T) {
	x, err := listenForEvictions("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer x.close()
	var list []*openai.Engine
	got := make([][]string, 2)
	for i := range got {
		e, err := openai.New(openai.Config{BaseURL: "http://127.0.0.1:1"})
		if err != nil {
			t.Fatal(err)
		}
		e.Subscribe(func(events ...contextpilot.Event) {
			for _, ev := range events {
				got[i] = append(got[i], fmt.Sprint(ev.Kind, " ", ev.Request))
			}
		})
		list = append(list, e)
	}
	post := func(path, body string) int {
		t.Helper()
		w := httptest.NewRecorder()
		x.server.Handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body)))
		return w.Code
	}
	if code := post("/0/evict", `{"request_ids":["early"]}`); code != http.StatusNotFound {
		t.Errorf("before there are replicas: %d", code)
	}
	x.reportTo(list)
	for path, want := range map[string]int{"/1/evict": 200, "/2/evict": 404, "/-1/evict": 404, "/x/evict": 404, "/evict": 404} {
		if code := post(path, `{"request_ids":["a","b"]}`); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
	if code := post("/1/evict", `{"request_ids":"a"}`); code != http.StatusBadRequest {
		t.Errorf("a body that is none: %d", code)
	}
	if len(got[0]) != 0 || strings.Join(got[1], ", ") != "gone a, gone b" {
		t.Errorf("got %q", got)
	}
}

// Losses of small caches are heard of: both arms know them, and nothing fails.
func TestRouteHearsEvictions(t *testing.T) {
	address := testkit.FreeAddress(t)
	var urls []string
	var posters []*upstream.Poster
	var running sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for i := range 2 {
		poster := upstream.NewPoster(upstream.PosterOptions{URL: fmt.Sprintf("http://%s/%d", address, i), Retries: -1})
		running.Go(func() { poster.Run(ctx) })
		posters = append(posters, poster)
		urls = append(urls, simulated(t, upstream.Options{CapacityTokens: 3000, Evict: poster.Add}))
	}
	_, err := onReplicas(t, urls, "--sessions", "25", "--reset", ":", "--evictions", address)
	stop()
	running.Wait()
	if err != nil {
		t.Error(err)
	}
	for i, p := range posters {
		if s := p.Stats(); s.Posted == 0 {
			t.Errorf("replica %d: %+v", i, s)
		}
	}
	for want, args := range map[string][]string{
		"--evictions nowhere: only with --reset": {"--evictions", "nowhere"},
		"--evictions: listen":                    {"--evictions", "127.0.0.1:x", "--reset", ":"},
	} {
		if _, err := onReplicas(t, urls, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %s", args, err, want)
		}
	}
}

// slotServer is a fake of llama-server without a cache: its own pages, and the simulated engine's answers.
func slotServer(t *testing.T, tokenizes bool) string {
	t.Helper()
	mux := http.NewServeMux()
	page := func(path string, v any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(v) })
	}
	page("/v1/models", map[string]any{"data": []any{map[string]string{"id": "m", "owned_by": "llamacpp"}}})
	page("/props", map[string]any{
		"total_slots": 3, "model_path": "/some/where/m.gguf", "build_info": "b1",
		"default_generation_settings": map[string]int{"n_ctx": 4096},
	})
	page("/slots", []any{})
	page("/apply-template", map[string]string{"prompt": "p"})
	if tokenizes {
		page("/tokenize", map[string]any{"tokens": []int{1, 2, 3}})
	}
	mux.Handle("/", upstream.New(upstream.Options{}))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// llama.cpp servers are recognised by their list of models, and their slots are followed.
func TestRouteFollowsSlots(t *testing.T) {
	urls := []string{slotServer(t, true), slotServer(t, true)}
	for want, args := range map[string][]string{
		"engines: 2 × llama.cpp b1 (m.gguf, 3 slots of 4096 tokens)\n":               nil,
		"engines: 2 × llama.cpp b1 (m.gguf, 3 slots of 4096 tokens, not followed)\n": {"--follow-slots=false"},
	} {
		out, err := onReplicas(t, urls, args...)
		if err != nil || !strings.HasPrefix(out, want) {
			t.Errorf("%v, got\n%swant %s", err, out, want)
		}
	}
	if _, err := onReplicas(t, []string{slotServer(t, false)}); err == nil || !strings.Contains(err.Error(), "texts were not counted") {
		t.Errorf("a server that does not report its tokens: %v", err)
	}
}
