package vllm_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/evict"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/engines/vllm"
)

// live returns an engine for the real vLLM server that RAGPILOT_VLLM_URL names, asked what it can do. It must have token
// details switched on; development mode and a small cache let more be tried.
func live(t *testing.T, tenant string) (*vllm.Engine, vllm.Features) {
	t.Helper()
	base := os.Getenv("RAGPILOT_VLLM_URL")
	if base == "" {
		t.Skip("RAGPILOT_VLLM_URL names no vLLM server")
	}
	asking, err := vllm.New(vllm.Config{Server: openai.Config{BaseURL: base}})
	if err != nil {
		t.Fatal(err)
	}
	features, err := asking.Detect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = asking.Close()
	engine, err := vllm.New(vllm.Config{
		Server:       openai.Config{BaseURL: base, Model: features.Models[0], Scope: contextpilot.Scope{Tenant: tenant}},
		PromptTokens: true, Sessions: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	if features, err = engine.Detect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return engine, features
}

// long is a chat of more than 500 tokens that differs from others in its first words.
func long(id, front string, words int) engines.Request {
	text := front + strings.Repeat(" tide boat", words/2)
	return engines.Request{ID: id, MaxTokens: 2, Messages: []engines.Message{{Role: engines.User, Content: text}}}
}

func TestLive(t *testing.T) {
	tenant := fmt.Sprintf("live@%d", time.Now().UnixNano()) // a name that is no salt
	engine, f := live(t, tenant)
	t.Logf("%s: vLLM %s, models %v, window %d, %d blocks of %d tokens, started %s", engine.Name(), f.Version, f.Models, f.Window, f.Blocks,
		f.BlockSize, f.Started.UTC().Format(time.RFC3339))
	for name, s := range map[string]vllm.Support{
		"session": f.Session, "salt": f.Salt, "priority": f.Priority, "prompt tokens": f.PromptTokens, "tokenizer": f.Tokenize,
		"event sources": f.EventSources, "reset": f.ResetCache, "metrics": f.Metrics, "prefix cache": f.PrefixCache,
	} {
		t.Logf("%-14s %s", name, s)
	}
	if f.BlockSize == 0 || f.Window == 0 || f.Started.IsZero() {
		t.Error("the server did not report its block size, window or start")
	}
	sources, err := engine.EventSources(t.Context())
	t.Logf("event sources %+v, %v", sources, err)
	before, err := engine.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	ask := func(id, tenant string) vllm.Response {
		t.Helper()
		response, err := engine.Chat(t.Context(), vllm.Request{Request: long(id, "first", 100), Tenant: tenant, Session: "live"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%-24s %d of %d tokens cached", response.ID, response.Usage.CachedTokens, response.Usage.PromptTokens)
		return response
	}
	cold, warm, other := ask("req-live-1", ""), ask("ID with-odd_characters.1:2/3", ""), ask("", "another tenant")
	n := len(cold.PromptTokens)
	if want := (n - 1) / f.BlockSize * f.BlockSize; cold.Usage.CachedTokens != 0 || warm.Usage.CachedTokens != want ||
		other.Usage.CachedTokens != 0 {
		t.Errorf("cached %d, then %d (want %d), and %d of another tenant", cold.Usage.CachedTokens, warm.Usage.CachedTokens, want,
			other.Usage.CachedTokens)
	}
	tokens, err := engine.TokenizeChat(t.Context(), long("", "first", 100).Messages)
	if err != nil || !slices.Equal(tokens, cold.PromptTokens) || n != cold.Usage.PromptTokens {
		t.Errorf("the tokenizer gives %d tokens, the answer %d, its usage %d: %v", len(tokens), n, cold.Usage.PromptTokens, err)
	}
	learned := engine.Features()
	t.Logf("after answers: IDs %s, cached tokens %s, prompt tokens %s", learned.RequestID, learned.CachedTokens, learned.PromptTokens)
	if !learned.RequestID.Has || !learned.CachedTokens.Has || !learned.PromptTokens.Has {
		t.Error("the answers did not show it")
	}
	after, err := engine.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("metrics: %+v", after)
	if after.Hits-before.Hits < int64(warm.Usage.CachedTokens) || after.Queries-before.Queries < int64(3*n) {
		t.Errorf("metrics went from %+v to %+v", before, after)
	}

	var got []contextpilot.Event
	defer engine.Subscribe(func(e ...contextpilot.Event) { got = append(got, e...) })()
	if err := engine.ResetCache(t.Context()); err != nil {
		t.Logf("reset: %v", err)
		return
	}
	if len(got) != 1 || got[0].Kind != contextpilot.Cleared {
		t.Errorf("reset reported %+v", got)
	}
	if again := ask("req-live-2", ""); again.Usage.CachedTokens != 0 {
		t.Errorf("%d tokens cached after a reset", again.Usage.CachedTokens)
	}
}

// reports are the last events of requests that the plugin reported.
type reports struct {
	mu   sync.Mutex
	last map[string]contextpilot.Event
	more chan struct{} // has an element after something new came
}

func (r *reports) observe(events ...contextpilot.Event) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range events {
		r.last[e.Request] = e
	}
	select {
	case r.more <- struct{}{}:
	default:
	}
	return len(events)
}

func (r *reports) of(id string) contextpilot.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[id]
}

// TestLivePlugin fills the cache of a real server that was started with the plugin and RAGPILOT_URL set to
// http://$RAGPILOT_VLLM_PLUGIN_ADDR, and checks what the plugin reports of the first request against the server itself.
func TestLivePlugin(t *testing.T) {
	addr := os.Getenv("RAGPILOT_VLLM_PLUGIN_ADDR")
	if addr == "" {
		t.Skip("RAGPILOT_VLLM_PLUGIN_ADDR names no address that the plugin posts to")
	}
	tenant := fmt.Sprintf("plugin-%d", time.Now().UnixNano())
	engine, f := live(t, tenant)
	requests, got := evict.NewRegistry(0), &reports{last: map[string]contextpilot.Event{}, more: make(chan struct{}, 1)}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/evict", evict.New(evict.Options{Requests: requests, Observe: got.observe}))
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })

	chat := func(id, front string, words int) vllm.Response {
		t.Helper()
		requests.Add(id, contextpilot.Scope{})
		response, err := engine.Chat(t.Context(), vllm.Request{Request: long(id, front, words)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	// until sends short requests, each a few blocks, until the plugin has reported enough of a request.
	sent := 0
	until := func(id, what string, enough func(contextpilot.Event) bool) {
		t.Helper()
		for i := range 4 * f.Blocks {
			if e := got.of(id); enough(e) {
				t.Logf("%s %s after %d more requests: %s, %d tokens", id, what, i, e.Kind, e.Tokens)
				return
			}
			sent++
			chat(fmt.Sprintf("req-filler-%d", sent), fmt.Sprint("filler ", sent), 10)
			select {
			case <-got.more:
			case <-time.After(200 * time.Millisecond): // a request that evicts nothing
			}
		}
		t.Fatalf("the plugin did not report that %s %s: %+v", id, what, got.of(id))
	}
	// The plugin waits for a while when there was no receiver before.
	chat("req-first", "zero", 10)
	until("req-first", "is reported", func(e contextpilot.Event) bool { return e.Kind != 0 })

	const id = "req-with-dashes-1"
	first := chat(id, "one", 100)
	until(id, "shrinks", func(e contextpilot.Event) bool { return e.Kind == contextpilot.Shrunk })
	time.Sleep(300 * time.Millisecond) // the last post, if one is on its way
	shrunk := got.of(id)
	if shrunk.Kind != contextpilot.Shrunk {
		t.Fatalf("gone before it could be looked at: %+v", shrunk)
	}
	again := chat("req-look", "one", 100) // the same prompt
	t.Logf("%d tokens reported as cached; sent again: %d of %d tokens cached", shrunk.Tokens, again.Usage.CachedTokens,
		again.Usage.PromptTokens)
	if again.Usage.CachedTokens != shrunk.Tokens || again.Usage.PromptTokens != first.Usage.PromptTokens {
		t.Errorf("the plugin says that %d of %d tokens are cached, the server finds %d", shrunk.Tokens, first.Usage.PromptTokens,
			again.Usage.CachedTokens)
	}
	until(id, "is gone", func(e contextpilot.Event) bool { return e.Kind == contextpilot.Gone })
}
