package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// words is the fake engines' tokenizer: a token for each word.
func words(raw json.RawMessage) int {
	var text string
	_ = json.Unmarshal(raw, &text)
	return len(strings.Fields(text))
}

// The /tokenize endpoints of the engines, as far as a tokenizer sees them.
func promptTokenizer(paths ...string) func(a asked, w http.ResponseWriter) {
	return func(a asked, w http.ResponseWriter) {
		prompt, ok := a.body["prompt"]
		switch {
		case !strings.Contains(" "+strings.Join(paths, " ")+" ", " "+a.path+" "):
			http.Error(w, `{"detail":"Not Found"}`, http.StatusNotFound)
		case !ok:
			http.Error(w, `{"error":{"message":"prompt: field required"}}`, http.StatusBadRequest)
		case string(a.body["add_special_tokens"]) != "false":
			fmt.Fprintf(w, `{"count":%d}`, words(prompt)+1)
		default:
			fmt.Fprintf(w, `{"count":%d,"max_model_len":4096,"tokens":[1,2,3]}`, words(prompt))
		}
	}
}

func contentTokenizer(a asked, w http.ResponseWriter) {
	tokens := make([]int, words(a.body["content"])) // no content: an empty list, as llama.cpp answers
	_ = json.NewEncoder(w).Encode(map[string][]int{"tokens": tokens})
}

func TestTokenizerDialects(t *testing.T) {
	cases := []struct {
		name   string
		answer func(a asked, w http.ResponseWriter)
		want   openai.TokenizerStats
		asks   int // of the fake, for two texts
	}{
		{"vLLM", promptTokenizer("/tokenize"), openai.TokenizerStats{Asked: 2, Cached: 1, Texts: 2}, 2},
		{"SGLang", promptTokenizer("/tokenize", "/v1/tokenize"), openai.TokenizerStats{Asked: 2, Cached: 1, Texts: 2}, 2},
		{"SGLang behind a proxy", promptTokenizer("/v1/tokenize"), openai.TokenizerStats{Asked: 2, Cached: 1, Texts: 2}, 4},
		{"llama.cpp", contentTokenizer, openai.TokenizerStats{Asked: 2, Cached: 1, Texts: 2}, 3},
		{"none", promptTokenizer("/elsewhere"), openai.TokenizerStats{Estimated: 3, Failures: 3, Pausing: true}, 9},
		{
			"nonsense", func(_ asked, w http.ResponseWriter) { fmt.Fprint(w, `{"count":100000,"tokens":[]}`) },
			openai.TokenizerStats{Estimated: 3, Failures: 3, Pausing: true},
			9,
		},
		{
			"a broken server", func(_ asked, w http.ResponseWriter) { http.Error(w, "down", http.StatusInternalServerError) },
			openai.TokenizerStats{Estimated: 3, Failures: 3, Pausing: true},
			3,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var f *fake
			f, engine := startFake2(t, func(f *fake, w http.ResponseWriter, n int) { c.answer(f.requests()[n], w) })
			tokenizer, err := engine.Tokenizer(openai.TokenizerConfig{Timeout: 30 * time.Second, Backoff: time.Hour, MaxBackoff: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			if n := tokenizer.Count(""); n != 0 {
				t.Errorf("the empty text has %d tokens", n)
			}
			for _, text := range []string{"one two three", "four <b>", "one two three"} {
				want := len(strings.Fields(text))
				if c.want.Asked == 0 {
					want = contextpilot.Estimate{}.Count(text)
				}
				if got := tokenizer.Count(text); got != want {
					t.Errorf("%q has %d tokens, want %d", text, got, want)
				}
			}
			if got := tokenizer.Stats(); got != c.want {
				t.Errorf("stats %+v, want %+v", got, c.want)
			}
			if got := len(f.requests()); got != c.asks {
				t.Errorf("the engine was asked %d times, want %d", got, c.asks)
			}
		})
	}
}

// startFake2 is startFake for scripts that look at what was asked.
func startFake2(t testing.TB, s func(f *fake, w http.ResponseWriter, n int)) (*fake, *openai.Engine) {
	t.Helper()
	var f *fake
	ready := make(chan struct{})
	f, engine := startFake(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		<-ready
		s(f, w, n)
	}, nil)
	close(ready)
	return f, engine
}

// TestTokenizerPauses: an engine that does not answer is asked ever more rarely, and counts meanwhile take no time.
func TestTokenizerPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		up := false
		f, engine, end := inMemory(t, func(w http.ResponseWriter, r *http.Request, n int) {
			mu.Lock()
			answers := up
			mu.Unlock()
			if !answers {
				hangs(w, r, n)
				return
			}
			fmt.Fprint(w, `{"count":1}`)
		}, nil)
		defer end()
		tokenizer, err := engine.Tokenizer(openai.TokenizerConfig{Timeout: time.Second, Backoff: 10 * time.Second, MaxBackoff: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		// Each step: wait, count once, and compare how long it took and how often the engine was asked so far.
		text := 0
		step := func(wait, took time.Duration, asked int, pausing bool) {
			t.Helper()
			time.Sleep(wait) // of the bubble's clock
			text++
			start := time.Now()
			tokenizer.Count(fmt.Sprint("text ", text))
			if got := time.Since(start); got != took {
				t.Errorf("count %d took %v, want %v", text, got, took)
			}
			if got := len(f.requests()); got != asked {
				t.Errorf("after count %d the engine was asked %d times, want %d", text, got, asked)
			}
			if got := tokenizer.Stats().Pausing; got != pausing {
				t.Errorf("after count %d: pausing %v", text, got)
			}
		}
		step(0, time.Second, 1, false)
		step(0, time.Second, 2, false)
		step(0, time.Second, 3, true) // a pause of 10 s begins
		step(0, 0, 3, true)
		step(9*time.Second, 0, 3, true)
		step(time.Second, time.Second, 4, true) // 20 s
		step(19*time.Second, 0, 4, true)
		step(time.Second, time.Second, 5, true) // 30 s, the longest
		step(29*time.Second, 0, 5, true)
		step(time.Second, time.Second, 6, true) // 30 s
		mu.Lock()
		up = true
		mu.Unlock()
		step(30*time.Second, 0, 7, false) // the engine answers again
		step(0, 0, 8, false)
		if got := tokenizer.Stats(); got.Asked != 2 || got.Failures != 6 || got.Estimated != 10 {
			t.Errorf("stats %+v", got)
		}
	})
}

// TestTokenizerProbesOnce: when a pause ends, one of many concurrent counts asks; the others estimate at once.
func TestTokenizerProbesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, engine, end := inMemory(t, hangs, nil)
		defer end()
		tokenizer, err := engine.Tokenizer(openai.TokenizerConfig{Timeout: time.Second, MaxFailures: 1, Backoff: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		tokenizer.Count("first")
		time.Sleep(5 * time.Second) // of the bubble's clock
		var wait sync.WaitGroup
		for i := range 20 {
			wait.Go(func() { tokenizer.Count(fmt.Sprint("text ", i)) })
		}
		wait.Wait()
		if got := len(f.requests()); got != 2 {
			t.Errorf("asked %d times, want 2", got)
		}
	})
}

// TestTokenizerCacheIsBounded also checks that the least recently used text goes first.
func TestTokenizerCacheIsBounded(t *testing.T) {
	f, engine := startFake2(t, func(f *fake, w http.ResponseWriter, n int) { promptTokenizer("/tokenize")(f.requests()[n], w) })
	tokenizer, err := engine.Tokenizer(openai.TokenizerConfig{CacheTexts: 3, Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		text string
		asks int
	}{{"a", 1}, {"b", 2}, {"c", 3}, {"a", 3}, {"d", 4}, {"a", 4}, {"c", 4}, {"b", 5}, {"d", 6}, {"b", 6}} {
		tokenizer.Count(step.text)
		if got := len(f.requests()); got != step.asks {
			t.Errorf("after %q: asked %d times, want %d", step.text, got, step.asks)
		}
	}
	if got := tokenizer.Stats().Texts; got != 3 {
		t.Errorf("%d texts in the cache", got)
	}
}

func TestTokenizerConcurrent(t *testing.T) {
	_, engine := startFake2(t, func(f *fake, w http.ResponseWriter, n int) { promptTokenizer("/tokenize")(f.requests()[n], w) })
	tokenizer, err := engine.Tokenizer(openai.TokenizerConfig{CacheTexts: 8, Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for g := range 8 {
		wait.Go(func() {
			for i := range 40 {
				n := 1 + (g+i)%16
				if got := tokenizer.Count(strings.Repeat("w ", n)); got != n {
					t.Errorf("%d tokens, want %d", got, n)
				}
			}
		})
	}
	wait.Wait()
	if s := tokenizer.Stats(); s.Cached+s.Asked != 320 || s.Texts > 8 {
		t.Errorf("stats %+v", s)
	}
}

func TestTokenizerRefuses(t *testing.T) {
	engine := newEngine(t, openai.Config{BaseURL: "http://127.0.0.1:1"})
	for field, config := range map[string]openai.TokenizerConfig{
		"Timeout -1":     {Timeout: -1},
		"CacheTexts -1":  {CacheTexts: -1},
		"MaxFailures -1": {MaxFailures: -1},
		"Backoff -1":     {Backoff: -1},
	} {
		if _, err := engine.Tokenizer(config); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("error %v does not say %q", err, field)
		}
	}
}
