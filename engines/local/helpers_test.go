package local_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/internal/tinymodel"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// pageBytes is what a block takes in the tiny model: 16 tokens' keys and values, 2 heads of 16 in 2 layers.
const pageBytes = 16 * 2 * 2 * 16 * 2 * 4

// tiny writes a model and returns its path.
func tiny(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := tinymodel.Write(path, tinymodel.Options{Seed: 11}); err != nil {
		t.Fatal(err)
	}
	return path
}

// open returns an engine with a tiny model, of so many blocks.
func open(t testing.TB, blocks int, config local.Config) *local.Engine {
	t.Helper()
	if config.Model == "" {
		config.Model = tiny(t)
	}
	config.CacheBytes = int64(blocks * pageBytes)
	e, err := local.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	if got := e.Stats().Blocks; got != blocks {
		t.Fatalf("the cache has %d blocks, want %d", got, blocks)
	}
	return e
}

// ask is a request for an answer of exactly so many tokens.
func ask(id, text string, tokens int) engines.Request {
	return engines.Request{
		ID: id, MaxTokens: tokens, Extra: extra("ignore_eos", true),
		Messages: []engines.Message{{Role: engines.User, Content: text}},
	}
}

// extra is a body of names and values.
func extra(pairs ...any) map[string]json.RawMessage {
	body := map[string]json.RawMessage{}
	for i := 0; i < len(pairs); i += 2 {
		body[pairs[i].(string)], _ = json.Marshal(pairs[i+1])
	}
	return body
}

// text has about so many tokens, different ones for each seed.
func text(seed, tokens int) string {
	var b strings.Builder
	for i := range tokens / 2 {
		fmt.Fprint(&b, (seed+i*i)%10, " ")
	}
	return b.String()
}

func generate(t testing.TB, e *local.Engine, req engines.Request) engines.Response {
	t.Helper()
	return testkit.Must(e.Generate(context.Background(), req, nil))(t)
}

// eventually waits for something that must happen, however long it takes on a busy machine.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for range 3000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("not in half a minute: %s", what)
}

// idle waits until no request runs, and checks that none has left anything.
func idle(t testing.TB, e *local.Engine) {
	t.Helper()
	eventually(t, "no request runs", func() bool { s := e.Stats(); return s.Running+s.Waiting == 0 })
	if s := e.Stats(); s.UsedBlocks != 0 {
		t.Errorf("%d blocks are in use, though no request runs: %+v", s.UsedBlocks, s)
	}
}
