package local_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
)

// What is wrong with a request is said with the field's name and its value.
func TestRefused(t *testing.T) {
	e := open(t, 10, local.Config{Served: "tiny"})
	bad := -1.0
	for want, change := range map[string]func(r *engines.Request){
		`model "huge"`:                func(r *engines.Request) { r.Model = "huge" },
		`messages []`:                 func(r *engines.Request) { r.Messages = nil },
		`temperature -1`:              func(r *engines.Request) { r.Temperature = &bad },
		`temperature 101`:             func(r *engines.Request) { r.Extra = extra("temperature", 101) },
		`repetition_penalty 0`:        func(r *engines.Request) { r.Extra = extra("repetition_penalty", 0) },
		`no_repeat_ngram_size -2`:     func(r *engines.Request) { r.Extra = extra("no_repeat_ngram_size", -2) },
		`temperature "hot"`:           func(r *engines.Request) { r.Extra = extra("temperature", "hot") },
		`top_p 0`:                     func(r *engines.Request) { r.Extra = extra("top_p", 0) },
		`top_p 1.5`:                   func(r *engines.Request) { r.Extra = extra("top_p", 1.5) },
		`seed 1.5`:                    func(r *engines.Request) { r.Extra = extra("seed", 1.5) },
		`stop ["a",5]`:                func(r *engines.Request) { r.Extra = extra("stop", []any{"a", 5}) },
		`stop ["a" ""]`:               func(r *engines.Request) { r.Extra = extra("stop", []any{"a", ""}) },
		`max_tokens -3`:               func(r *engines.Request) { r.MaxTokens = -3 },
		`max_tokens 0`:                func(r *engines.Request) { r.Extra = extra("max_tokens", 0) },
		`max_tokens 500`:              func(r *engines.Request) { r.MaxTokens = 500 },
		`max_completion_tokens -1`:    func(r *engines.Request) { r.Extra = extra("max_completion_tokens", -1) },
		`max_tokens "many"`:           func(r *engines.Request) { r.Extra = extra("max_tokens", "many") },
		`prompt of 415 tokens`:        func(r *engines.Request) { r.Messages[0].Content = strings.Repeat("0", 400) },
		`ignore_eos 1`:                func(r *engines.Request) { r.Extra = extra("ignore_eos", 1) },
		`cache_salt 7`:                func(r *engines.Request) { r.Extra = extra("cache_salt", 7) },
		`max_completion_tokens "one"`: func(r *engines.Request) { r.Extra = extra("max_completion_tokens", "one") },
	} {
		req := engines.Request{ID: "r", Messages: []engines.Message{{Role: engines.User, Content: "hello"}}}
		change(&req)
		r, err := e.Generate(t.Context(), req, nil)
		if !errors.Is(err, engines.ErrRefused) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "request r") ||
			r.ID != "r" {
			t.Errorf("want %s refused: %v", want, err)
		}
	}
	for want, prompt := range map[string][]int32{
		"prompt []": nil, "token 1 is -5": {3, -5}, "token 0 is 320": {320},
	} {
		if _, err := e.GenerateTokens(t.Context(), engines.Request{}, prompt, nil); !errors.Is(err, engines.ErrRefused) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("want %s refused: %v", want, err)
		}
	}
	for want, answer := range map[string]string{`answer ""`: "", "answer of 300": strings.Repeat("0", 300)} {
		if _, err := e.Score(t.Context(), ask("", "hello", 1), answer, nil); !errors.Is(err, engines.ErrRefused) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("want %s refused: %v", want, err)
		}
	}
	if s := e.Stats(); s.QueriedTokens != 0 || s.ResidentRequests != 0 {
		t.Errorf("refused requests have come to the model: %+v", s)
	}
}

func TestOpenRefuses(t *testing.T) {
	path := tiny(t)
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no model"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, config := range map[string]local.Config{
		"Threads -1":       {Model: path, Threads: -1},
		"CacheBytes -1":    {Model: path, CacheBytes: -1},
		"in 9000 bytes":    {Model: path, CacheBytes: 9000},
		"no such file":     {Model: path + "x"},
		text:               {Model: text},
		"Step -2":          {Model: path, Step: -2},
		"Running -3":       {Model: path, Running: -3},
		"MaxTokens -4":     {Model: path, MaxTokens: -4},
		"local engine: ":   {},
		"want at least 32": {Model: path, CacheBytes: 1},
	} {
		if e, err := local.Open(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: error %v", want, err)
			if err == nil {
				e.Close()
			}
		}
	}
}
