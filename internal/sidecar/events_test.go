package sidecar_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/internal/sidecar"
	"github.com/ragpilot/ragpilot/internal/sidecar/cachewatch"
	"github.com/ragpilot/ragpilot/internal/sidecar/dashboard"
	"github.com/ragpilot/ragpilot/internal/sidecar/server"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/sidecar/tenant"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/internal/testkit/kvfake"
)

// followed is a sidecar in front of a fake engine whose events it follows.
type followed struct {
	engine *kvEngine
	api    *sidecar.API
	admin  *http.ServeMux
	log    *testkit.Log
}

// follow starts one; engines are those of the settings, with the fake's addresses in place of E and R.
func follow(t testing.TB, e *kvEngine, live *settings.Live, engines ...settings.Engine) *followed {
	t.Helper()
	return followAs(t, e, live, func(c *settings.Config) { c.Engines = engines })
}

// followAs starts one with settings of its own.
func followAs(t testing.TB, e *kvEngine, live *settings.Live, change func(*settings.Config)) *followed {
	t.Helper()
	cfg := settings.Default()
	cfg.InferAPIURL = e.URL
	change(&cfg)
	if live == nil {
		live = settings.NewLive(cfg)
	}
	f := &followed{engine: e, admin: http.NewServeMux(), log: new(testkit.Log)}
	var err error
	if f.api, err = sidecar.New(cfg, sidecar.Options{Live: live, Log: slog.New(slog.NewTextHandler(f.log, nil))}); err != nil {
		t.Fatal(err)
	}
	f.api.Admin(f.admin)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.api.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		_ = f.api.Close()
	})
	return f
}

// vllmAt is the engine of most tests.
func vllmAt(e *kvEngine) settings.Engine {
	return settings.Engine{Kind: "vllm", Events: e.events, Replay: e.replay}
}

// ready waits until the engine's events are followed and it was asked what it can do.
func (f *followed) ready(t testing.TB) {
	t.Helper()
	await(t, "events are followed", func() bool {
		c := f.caches()
		return c != nil && len(c.Sources) > 0 && c.Sources[0].Complete && c.Sources[0].Version != ""
	})
}

func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not so: ", what)
		}
	}
}

func (f *followed) caches() *cachewatch.Snapshot {
	w := httptest.NewRecorder()
	f.admin.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/figures", http.NoBody))
	var out struct{ Caches *cachewatch.Snapshot }
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		return nil
	}
	return out.Caches
}

// shown is what the dashboard shows.
func (f *followed) shown(t testing.TB) dashboard.Data {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/ui/data.json", http.NoBody)
	r.Host = "localhost"
	f.admin.ServeHTTP(w, r)
	var data dashboard.Data
	if err := json.Unmarshal(w.Body.Bytes(), &data); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	return data
}

// index returns live prompts and tokens by tenant.
func (f *followed) index(t testing.TB) map[string][2]int {
	t.Helper()
	out := map[string][2]int{}
	for _, e := range f.shown(t).Engines {
		now := out[e.Tenant]
		out[e.Tenant] = [2]int{now[0] + *e.Live, now[1] + *e.Tokens}
	}
	return out
}

// ask sends a body for a tenant and returns the answer.
func (f *followed) ask(t testing.TB, name, path, body string, header ...string) string {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	f.api.ServeHTTP(w, r.WithContext(tenant.With(r.Context(), name)))
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	return w.Body.String()
}

// chatOf is a question behind documents, four of 400 bytes, that have a word in them; more is added to the body.
func chatOf(word, more string) string {
	var docs strings.Builder
	for i := range 4 {
		fmt.Fprintf(&docs, "<document>%s</document>", strings.Repeat(fmt.Sprintf("%s%d ", word, i), 400/(len(word)+2)))
	}
	text, _ := json.Marshal("Answer.\n<documents>" + docs.String() + "</documents>")
	return fmt.Sprintf(`{"model":"m","messages":[{"role":"system","content":%s},{"role":"user","content":"why?"}]%s}`, text, more)
}

const chatPath = "/v1/chat/completions"

// What the engine evicts leaves the index: a part of a prompt first, then all of it; and other tenants' prompts stay.
func TestEventsReachTheIndex(t *testing.T) {
	for name, way := range map[string]struct {
		tokens, more string
		old          bool
	}{
		"tokens in the answer":     {"", "", false},
		"tokens in a stream":       {"", `,"stream":true`, false},
		"tokens of the tokenizer":  {"tokenize", "", false},
		"an older release":         {"", "", true},
		"streams of such a one":    {"", `,"stream":true`, true},
		"the client wants them":    {"", `,"return_token_ids":true`, false},
		"the client refuses them":  {"", `,"return_token_ids":false`, false},
		"a salt of the client's":   {"", `,"cache_salt":"s"`, false},
		"both":                     {"tokenize", `,"stream":true,"cache_salt":"s"`, false},
		"a request with an ID":     {"", `,"rid":"mine"`, false},
		"an adapter of the model":  {"", `,"model2":0`, false},
		"a second one of the same": {"answer", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			e := newKVEngine(t)
			e.old = way.old
			e.publish(t)
			cfg := vllmAt(e)
			cfg.PromptTokens = way.tokens
			f := follow(t, e, nil, cfg)
			f.ready(t)
			body := func(word string) string {
				b := chatOf(word, way.more)
				if strings.Contains(way.more, "model2") {
					b = strings.Replace(b, `"model":"m"`, `"model":"lora"`, 1)
				}
				return b
			}
			f.ask(t, "red", chatPath, body("apple"))
			f.ask(t, "red", chatPath, body("berry"))
			f.ask(t, "blue", chatPath, body("cedar"))
			await(t, "all tokens are known", func() bool { return f.caches().Prompts.Learned == 3 })
			whole := f.index(t)
			if whole["red"][0] != 2 || whole["blue"][0] != 1 {
				t.Fatalf("index %v", whole)
			}

			blocks := len(e.prompt[promptOf(t, e, "apple")])
			e.evict(t, "apple", blocks/2) // about the half of its documents
			await(t, "a part has left the index", func() bool { return f.index(t)["red"][1] < whole["red"][1] })
			gone := float64(whole["red"][1]-f.index(t)["red"][1]) / float64(whole["red"][1]/2)
			if gone < 0.4 || gone > 0.6 {
				t.Errorf("%.2f of the prompt has left the index, half of its blocks were evicted", gone)
			}
			e.evict(t, "apple", 1) // the first block is the others' too
			await(t, "it has left the index", func() bool { return f.index(t)["red"][0] == 1 })
			if now := f.index(t); now["blue"] != whole["blue"] {
				t.Errorf("another tenant's prompt went too: %v, before %v", now, whole)
			}
			e.evict(t, "cedar", 1)
			await(t, "the other tenant's has", func() bool { return f.index(t)["blue"][0] == 0 })
			if now := f.index(t)["red"][0]; now != 1 {
				t.Errorf("%d prompts of red, want 1", now)
			}
		})
	}
}

// promptOf returns the prompt with a word.
func promptOf(t testing.TB, e *kvEngine, word string) string {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for text := range e.prompt {
		if strings.Contains(text, word) {
			return text
		}
	}
	t.Fatal("no prompt with", word)
	return ""
}

// Whoever follows, the client gets the bytes that it would get otherwise, and the engine nothing that it does not know.
func TestEventsChangeNoAnswer(t *testing.T) {
	for name, more := range map[string]string{"whole": "", "stream": `,"stream":true`, "own tokens": `,"return_token_ids":true`} {
		t.Run(name, func(t *testing.T) {
			e := newKVEngine(t)
			e.publish(t)
			plain, with := follow(t, e, nil), follow(t, e, nil, vllmAt(e))
			with.ready(t)
			want := plain.ask(t, "", chatPath, chatOf("apple", more))
			sent := e.last()
			if got := with.ask(t, "", chatPath, chatOf("apple", more), "Accept-Encoding", "gzip"); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			added := strings.Replace(e.last(), `,"return_token_ids":true`, "", 1)
			if more == `,"return_token_ids":true` {
				added = e.last()
			}
			if added != sent {
				t.Errorf("sent %s\nwant %s and return_token_ids", e.last(), sent)
			}
			// What has no documents at its front is sent as it is.
			bare := `{"model":"m","messages":[{"role":"user","content":"why?"}]}`
			with.ask(t, "", chatPath, bare)
			if e.last() != bare {
				t.Errorf("sent %s", e.last())
			}
		})
	}
}

// A later turn brings evicted documents back into the cache: the index has them again, as they are sent.
func TestEvictedAndSentAgain(t *testing.T) {
	e := newKVEngine(t)
	e.publish(t)
	f := follow(t, e, nil, vllmAt(e))
	f.ready(t)
	f.ask(t, "", chatPath, chatOf("apple", ""))
	whole := f.index(t)[""]
	for round := range 3 {
		await(t, "its tokens are known", func() bool { return f.caches().Prompts.Learned == uint64(1+round) })
		e.evict(t, "apple", 0)
		await(t, "it has left the index", func() bool { return f.index(t)[""][0] == 0 })
		f.ask(t, "", chatPath, chatOf("apple", ""))
		if now := f.index(t)[""]; now != whole {
			t.Fatalf("round %d: index %v, at first %v", round, now, whole)
		}
	}
	f.ask(t, "", chatPath, chatOf("apple", "")) // nothing was lost
	if n := strings.Count(strings.Join(e.bodies, ""), "return_token_ids"); n != 4 {
		t.Errorf("tokens were asked for %d times, want 4", n)
	}
}

// The index endpoints hear of the engine's evictions, of plain completions, too.
func TestEventsReachTheEndpoints(t *testing.T) {
	e := newKVEngine(t)
	e.publish(t)
	f := follow(t, e, nil, vllmAt(e))
	f.ready(t)
	f.ask(t, "", "/reorder", `{"contexts":[[1,2],[2,3]]}`)
	f.ask(t, "", "/v1/completions", `{"model":"m","rid":"plain","prompt":"`+strings.Repeat("apple ", 30)+`"}`)
	f.ask(t, "", chatPath, `{"model":"m","rid":"chat","messages":[{"role":"user","content":"`+strings.Repeat("berry ", 30)+`"}]}`)
	known := func() string {
		w := httptest.NewRecorder()
		f.api.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/requests", http.NoBody))
		return w.Body.String()
	}
	await(t, "all tokens are known", func() bool { return f.caches().Prompts.Learned == 2 })
	for _, c := range [][2]string{{"apple", `"plain"`}, {"berry", `"chat"`}} {
		if !strings.Contains(known(), c[1]) {
			t.Fatalf("%s is not in %s", c[1], known())
		}
		e.evict(t, c[0], 0)
		await(t, c[1]+" is gone", func() bool { return !strings.Contains(known(), c[1]) })
	}
}

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

// What is kept for the tokenizer is a part of what bodies may take, as it is set now.
func TestEventsKeepFewBodies(t *testing.T) {
	e := newKVEngine(t)
	e.publish(t)
	arrived, proceed := make(chan struct{}, 1), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Slow") != "" {
			arrived <- struct{}{}
			<-proceed
		}
		e.ServeHTTP(w, r)
	}))
	t.Cleanup(slow.Close)
	cfg := settings.Default()
	cfg.InferAPIURL = slow.URL
	mine := vllmAt(e)
	mine.PromptTokens = "tokenize"
	cfg.Engines = []settings.Engine{mine}
	next := cfg
	live := settings.NewLive(cfg)
	front, err := server.New(
		cfg,
		http.NotFoundHandler(),
		server.Options{Live: live, Load: func() (settings.Config, error) { return next, nil }},
	)
	if err != nil {
		t.Fatal(err)
	}
	f := followAs(t, e, live, func(c *settings.Config) { *c = cfg })
	f.ready(t)
	for i, c := range []struct {
		bytes   int64
		missing uint64
	}{{1 << 30, 0}, {1 << 10, 1}} { // a body has about 1.8 kB
		next.Limits.InFlightBytes = c.bytes
		if err := front.Reload(); err != nil {
			t.Fatal(err)
		}
		before := f.caches().Prompts
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			f.ask(t, "red", chatPath, chatOf(fmt.Sprint("apple", i), ""), "X-Slow", "1")
		}()
		<-arrived
		f.ask(t, "red", chatPath, chatOf(fmt.Sprint("berry", i), ""))
		if n := f.caches().Prompts.Missing - before.Missing; n != c.missing {
			t.Errorf("%d bytes: %d prompts found no room, want %d", c.bytes, n, c.missing)
		}
		proceed <- struct{}{}
		<-ended
		await(t, "the others' tokens are known", func() bool { return f.caches().Prompts.Learned-before.Learned == 2-c.missing })
	}
}

// What the engine has lost does not come back with a restart of the sidecar, whichever way it was reported.
func TestClearedStaysClearedAfterARestart(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, e *kvEngine, f *followed){
		"events": func(t *testing.T, e *kvEngine, f *followed) {
			n := 0
			await(t, "events come as they are published", func() bool { // the first ones may be missed until others come
				n++
				e.store(strings.Repeat(fmt.Sprint("other", n), 10), "", "m")
				s := f.caches().Sources[0]
				return s.Batches > s.Replayed
			})
			e.mu.Lock()
			defer e.mu.Unlock()
			e.hashes, e.prompt = map[string]uint64{}, map[string][]uint64{}
			e.pub.Publish(kvfake.Payload(kvfake.Map, 3, 0, kvevents.Event{Kind: kvevents.Cleared}))
		},
		"answers": func(t *testing.T, _ *kvEngine, f *followed) { // the fake says that nothing was cached
			for i := range 25 {
				f.ask(t, "blue", chatPath, strings.ReplaceAll(chatOf("berry", ""), "berry3", fmt.Sprint("other", i)))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, dir := newKVEngine(t), t.TempDir()
			e.publish(t)
			sidecar := func(what string, do func(t *testing.T, f *followed), engines ...settings.Engine) {
				t.Run(what, func(t *testing.T) {
					do(t, followAs(t, e, nil, func(c *settings.Config) { c.Engines, c.StateDir = engines, dir }))
				})
			}
			sidecar("first", func(t *testing.T, f *followed) {
				f.ask(t, "red", chatPath, chatOf("apple", ""))
				f.ask(t, "blue", chatPath, chatOf("berry", ""))
			})
			sidecar("again", func(t *testing.T, f *followed) {
				if n := f.index(t)["red"][0]; n != 1 {
					t.Fatalf("%d prompts came back, want 1", n)
				}
				f.ready(t)
				lose(t, e, f)
				await(t, "the index is empty", func() bool { return f.index(t)["red"][0] == 0 })
				f.ask(t, "green", chatPath, chatOf("cedar", ""))
			}, vllmAt(e))
			sidecar("at last", func(t *testing.T, f *followed) {
				if now := f.index(t); now["red"][0] != 0 || now["green"][0] != 1 {
					t.Errorf("index %v, want only what was sent since", now)
				}
			})
		})
	}
}

// POST /evict reports parts of prompts, too.
func TestEvictPrefixesReachTheIndex(t *testing.T) {
	e := newKVEngine(t)
	f := follow(t, e, nil)
	f.ask(t, "", "/reorder", `{"contexts":[[1,2],[2,3]]}`)
	f.ask(t, "", chatPath, chatOf("apple", `,"rid":"mine"`))
	whole := f.index(t)[""]
	f.ask(t, "", "/evict", `{"prefixes":[{"request_id":"chatcmpl-mine-1234abcd","resident_tokens":200}]}`)
	if now := f.index(t)[""]; now[0] != 1 || now[1] != 200 || whole[1] < 350 {
		t.Errorf("index %v, before %v; want 200 tokens of it", now, whole)
	}
}

// BenchmarkEventToIndex is the time from an eviction's publication until the index has it.
func BenchmarkEventToIndex(b *testing.B) {
	e := newKVEngine(b)
	e.publish(b)
	f := follow(b, e, nil, vllmAt(e))
	f.ready(b)
	var worst time.Duration
	var all []time.Duration
	i := uint64(0)
	for b.Loop() {
		b.StopTimer()
		word := fmt.Sprintf("w%dw", i)
		i++
		f.ask(b, "", chatPath, chatOf(word, ""))
		for f.caches().Prompts.Learned < i {
			time.Sleep(time.Millisecond)
		}
		lost := f.caches().Prompts
		b.StartTimer()
		began := time.Now()
		e.evict(b, word, 1)
		for f.caches().Prompts.Shrunk == lost.Shrunk {
			time.Sleep(20 * time.Microsecond)
		}
		took := time.Since(began)
		worst, all = max(worst, took), append(all, took)
	}
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "µs/median")
	b.ReportMetric(float64(worst.Microseconds()), "µs/worst")
}
