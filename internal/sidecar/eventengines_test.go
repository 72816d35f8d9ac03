package sidecar_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/cachewatch"
	"github.com/ragpilot/ragpilot/internal/sidecar/server"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// The engine comes late, stops, and comes again as another process: answers go on, and its cache is known to be empty.
func TestEventsEngineComesAndGoes(t *testing.T) {
	e := newKVEngine(t)
	f := follow(t, e, nil, vllmAt(e))
	await(t, "the log line", func() bool { return strings.Contains(f.log.String(), "no connection, trying again") })
	if s := f.shown(t).Feeds; len(s) != 1 || s[0].Connected || s[0].Complete || s[0].Cause != "starting" || s[0].Since == nil ||
		s[0].Problem == "" {
		t.Errorf("the dashboard shows %+v, want a feed that has not begun, and why", s)
	}
	f.ask(t, "", chatPath, chatOf("zebra", ""))
	e.publish(t)
	f.ready(t)
	f.ask(t, "", chatPath, chatOf("apple", ""))
	await(t, "its tokens are known", func() bool { return f.caches().Prompts.Learned > 0 })
	await(t, "the log line", func() bool { return strings.Contains(f.log.String(), "cache events: connected") })
	if s := f.shown(t).Feeds; len(s) != 1 || !s[0].Connected || !s[0].Complete || s[0].Since != nil || s[0].Events == 0 {
		t.Errorf("the dashboard shows %+v, want a complete feed", s)
	}
	e.stop()
	await(t, "the log line", func() bool { return strings.Contains(f.log.String(), "the connection was lost") })
	if n := f.index(t)[""][0]; n != 2 {
		t.Errorf("%d prompts are in the index while nothing is known", n)
	}
	f.ask(t, "", chatPath, chatOf("apple", "")) // the publisher is gone, the engine is not
	next := &kvEngine{events: e.events, replay: e.replay, pub: newPublisher(), hashes: map[string]uint64{}, prompt: map[string][]uint64{}}
	next.publish(t)
	next.store(strings.Repeat("other ", 10), "", "m")
	await(t, "the index is empty", func() bool { return f.index(t)[""][0] == 0 })
	if c := f.caches(); len(c.Sources[0].Windows) < 2 || c.Prompts.Cleared != 1 {
		t.Errorf("%+v", c)
	}
}

// An engine that is asked where it publishes comes back elsewhere, and then with a second rank: it is followed there.
func TestEventsMove(t *testing.T) {
	e := newKVEngine(t)
	rank := func(n int, events, replay string) string {
		return fmt.Sprintf(`"%d":{"publisher":"zmq","endpoint":%q,"replay_endpoint":%q,"topic":"kv"}`, n, events, replay)
	}
	e.ranks = "{" + rank(0, e.events, e.replay) + "}"
	e.publish(t)
	f := follow(t, e, nil, settings.Engine{Kind: "vllm", Events: "auto"})
	f.ready(t)
	learned := uint64(0)
	evicts := func(word string) {
		t.Helper()
		f.ask(t, "", chatPath, chatOf(word, ""))
		learned++
		await(t, "its tokens are known", func() bool { return f.caches().Prompts.Learned == learned })
		if n := f.index(t)[""][0]; n != 1 {
			t.Errorf("%s: %d prompts are in the index, want 1", word, n)
		}
		e.evict(t, word, 0)
		await(t, word+" has left the index", func() bool { return f.index(t)[""][0] == 0 })
	}
	evicts("apple")
	f.ask(t, "", chatPath, chatOf("berry", ""))
	learned++
	await(t, "its tokens are known", func() bool { return f.caches().Prompts.Learned == learned })

	restart := func(more ...string) { // with an empty cache
		t.Helper()
		e.stop()
		e.mu.Lock()
		dir := t.TempDir()
		if len(more) == 0 {
			e.events, e.replay = "ipc://"+dir+"/e", "ipc://"+dir+"/r"
		}
		e.pub, e.hashes, e.prompt = newPublisher(), map[string]uint64{}, map[string][]uint64{}
		e.ranks = "{" + strings.Join(append(more, rank(0, e.events, e.replay)), ",") + "}"
		e.mu.Unlock()
		e.publish(t)
	}
	followed := func(ranks int) {
		t.Helper()
		await(t, fmt.Sprint(ranks, " ranks are followed"), func() bool {
			c := f.caches()
			return len(c.Sources) == ranks && !slices.ContainsFunc(c.Sources, func(s cachewatch.State) bool { return !s.Complete })
		})
	}
	restart()
	await(t, "what the engine had has left the index", func() bool { return f.index(t)[""][0] == 0 })
	followed(1)
	evicts("cedar")

	other := newKVEngine(t)
	other.publish(t)
	restart(rank(1, other.events, other.replay))
	followed(2)
	evicts("dogwood")
}

// Where the engine names a host it may connect there instead of listening: that is said while nobody listens.
func TestEventsEngineConnects(t *testing.T) {
	e := newKVEngine(t)
	e.ranks = `{"0":{"publisher":"zmq","endpoint":"tcp://127.0.0.1:1","replay_endpoint":"tcp://*:1","topic":"kv"}}`
	f := follow(t, e, nil, settings.Engine{Kind: "vllm", Events: "auto"})
	await(t, "the log line", func() bool { return strings.Contains(f.log.String(), "connects to tcp://127.0.0.1:1") })
	if c := f.caches(); len(c.Sources) != 1 || !strings.Contains(c.Sources[0].Hint, "connects to tcp://127.0.0.1:1") {
		t.Errorf("%+v", c.Sources)
	}
}

// Settings that change while it runs: no engine, one, another, none.
func TestEventsReload(t *testing.T) {
	e, other := newKVEngine(t), newKVEngine(t)
	e.publish(t)
	other.publish(t)
	cfg := settings.Default()
	cfg.InferAPIURL = e.URL
	load := make(chan settings.Config, 1)
	live := settings.NewLive(cfg)
	front, err := server.New(
		cfg,
		http.NotFoundHandler(),
		server.Options{Live: live, Load: func() (settings.Config, error) { return <-load, nil }},
	)
	if err != nil {
		t.Fatal(err)
	}
	f := follow(t, e, live)
	reload := func(engines ...settings.Engine) {
		t.Helper()
		next := cfg
		next.Engines = engines
		load <- next
		if err := front.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	if f.caches() != nil {
		t.Fatal("something is followed")
	}
	reload(vllmAt(e))
	f.ready(t)
	f.ask(t, "", chatPath, chatOf("apple", ""))
	await(t, "its tokens are known", func() bool { return f.caches().Prompts.Learned == 1 })
	named := vllmAt(other)
	named.Name, named.Models = "b", []string{"n"}
	mine := vllmAt(e)
	mine.Name, mine.Models = "a", []string{"m"}
	reload(mine, named)
	await(t, "both are followed", func() bool {
		c := f.caches()
		return c != nil && len(c.Sources) == 2 && c.Sources[0].Complete && c.Sources[0].Version != "" && c.Sources[1].Complete
	})
	if n := f.index(t)[""][0]; n != 0 {
		t.Errorf("%d prompts are in the index of which nothing will be heard", n)
	}
	f.ask(t, "", chatPath, chatOf("cedar", ""))
	await(t, "its tokens are known", func() bool { return f.caches().Prompts.Learned == 2 })
	reload(mine)
	await(t, "one is followed", func() bool { c := f.caches(); return c != nil && len(c.Sources) == 1 })
	if n := f.index(t)[""][0]; n != 1 {
		t.Errorf("%d prompts are in the index, want 1: its engine is still followed", n)
	}
	e.evict(t, "cedar", 0)
	await(t, "it has left the index", func() bool { return f.index(t)[""][0] == 0 })
	reload(named)
	await(t, "another one is followed", func() bool {
		c := f.caches()
		return c != nil && c.Sources[0].Engine == "b" && c.Sources[0].Complete
	})
	f.ask(t, "", chatPath, chatOf("berry", "")) // of a model that it does not serve
	if strings.Contains(e.last(), "return_token_ids") {
		t.Error(e.last())
	}
	reload()
	await(t, "nothing is followed", func() bool { return f.caches() == nil })
}

// Ranks and engines that nobody chooses between are one picture: a prompt is gone when the last of them has lost it.
func TestEventsOfSeveral(t *testing.T) {
	e, other := newKVEngine(t), newKVEngine(t)
	e.publish(t)
	other.publish(t)
	a, b := vllmAt(e), vllmAt(other)
	b.URL = other.URL
	f := follow(t, e, nil, a, b)
	await(t, "both are followed", func() bool {
		c := f.caches()
		return c != nil && len(c.Sources) == 2 &&
			!slices.ContainsFunc(c.Sources, func(s cachewatch.State) bool { return !s.Complete || s.Version == "" })
	})
	f.ask(t, "", chatPath, chatOf("apple", ""))
	text := promptOf(t, e, "apple")
	other.store(text, "", "m")
	other.store(strings.Repeat("end ", 8), "", "m")
	await(t, "its tokens are known, and both report it", func() bool {
		c := f.caches()
		return c.Prompts.Learned == 1 && c.Sources[0].Batches == 1 && c.Sources[1].Batches == 2
	})
	e.evict(t, "apple", 0)
	await(t, "that was heard of", func() bool { return f.caches().Prompts.Shrunk == 1 })
	if n := f.index(t)[""][0]; n != 1 {
		t.Errorf("%d prompts are in the index, and one engine holds it", n)
	}
	other.evict(t, "apple", 0)
	await(t, "it has left the index", func() bool { return f.index(t)[""][0] == 0 })
}
