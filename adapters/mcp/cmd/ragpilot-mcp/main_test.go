package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ragpilot/ragpilot/embed/minilm"
)

// serve runs the command and returns a client of it.
func serve(t *testing.T, args ...string) *sdk.ClientSession {
	t.Helper()
	here, there := sdk.NewInMemoryTransports()
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	go func() { ended <- run(ctx, args, io.Discard, there) }()
	client, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		stop()
		t.Fatal(err, <-ended)
	}
	t.Cleanup(func() {
		_ = client.Close()
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return client
}

func call(t *testing.T, c *sdk.ClientSession, tool string, arguments map[string]any) string {
	t.Helper()
	res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatal(err)
	}
	return res.Content[0].(*sdk.TextContent).Text
}

// Documents of a folder are found, and a fact is remembered by the next process.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "bees.md"), []byte("# Bees\n\nA hive has one queen.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(t.TempDir(), "memories.db")
	first := serve(t, "--docs", dir, "--memory", db, "--user", "ana", "--memory-embedder", "lexical")
	if got := call(t, first, "search", map[string]any{"query": "queen"}); !strings.Contains(got, `"id":"bees.md#0"`) {
		t.Errorf("found %s", got)
	}
	if got := call(t, first, "remember", map[string]any{"text": "Ana keeps bees."}); !strings.Contains(got, "Ana keeps bees.") {
		t.Errorf("remembered %s", got)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if got := call(t, serve(t, "--memory", db, "--user", "ana", "--memory-embedder", "lexical"), "recall",
		map[string]any{"query": "bees"}); !strings.Contains(got, "Ana keeps bees.") {
		t.Errorf("recalled %s", got)
	}
}

func TestWrongArguments(t *testing.T) {
	for want, args := range map[string][]string{
		"nothing to serve":        nil,
		`unexpected argument "x"`: {"x"},
		"Options.Scope":           {"--memory", filepath.Join(t.TempDir(), "m.db"), "--memory-embedder", "lexical"},
		`--memory-embedder "word2vec": want auto, minilm, minilm:DIR, lexical`: {
			"--memory", filepath.Join(t.TempDir(), "m.db"),
			"--memory-embedder", "word2vec",
		},
		"want the name of the server's model": {
			"--memory", filepath.Join(t.TempDir(), "m.db"),
			"--memory-embedder", "http://localhost:1",
		},
		"not defined: -folder":      {"--folder", "x"},
		"no such file or directory": {"--docs", filepath.Join(t.TempDir(), "nowhere")},
	} {
		_, there := sdk.NewInMemoryTransports()
		if err := run(t.Context(), args, io.Discard, there); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}

// With no option set the real model finds what is asked in other words.
func TestRecallByMeaning(t *testing.T) {
	dir, err := os.Getenv(minilm.FolderVariable), error(nil)
	if dir == "" {
		if dir, err = minilm.DefaultDir(); err != nil {
			t.Skip("needs the sentence model: ", err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "model.safetensors")); err != nil {
		t.Skip("needs the sentence model, 83 MB: RAGPILOT_MINILM names its folder, and \"ragpilot model pull minilm\" fetches it")
	}
	c := serve(t, "--memory", filepath.Join(t.TempDir(), "memories.db"), "--user", "ana", "--k", "1")
	for _, fact := range []string{"Ana drives an old Volvo.", "Ana's travel document expires in May.", "Ana needs new tyres."} {
		call(t, c, "remember", map[string]any{"text": fact})
	}
	got := ""
	// By words, if the model takes longer than 10 s.
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if got = call(t, c, "recall", map[string]any{"query": "When do I need a new passport?"}); strings.Contains(got, "travel document") {
			return
		}
	}
	t.Errorf("recalled %s", got)
}
