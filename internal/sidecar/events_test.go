package sidecar_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/internal/sidecar/server"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/testkit/kvfake"
)

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
