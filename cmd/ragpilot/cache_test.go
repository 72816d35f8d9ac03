package main

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/localtest"
	"github.com/ragpilot/ragpilot/internal/lab/upstream"
)

// What an engine keeps is listed, with damage, and deleted.
func TestCache(t *testing.T) {
	dir, model := t.TempDir(), filepath.Join(t.TempDir(), "tiny.gguf")
	if err := localtest.WriteModel(model, 1); err != nil {
		t.Fatal(err)
	}
	engine, err := local.Open(local.Config{Model: model, CacheDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	question := []engines.Message{{Role: engines.User, Content: strings.Repeat("Who lit the lamp? ", 5)}}
	if _, err := engine.Generate(t.Context(), engines.Request{MaxTokens: 1, Messages: question}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, "cache", "rm", dir, "--all"); err == nil {
		t.Error("files were deleted under an engine")
	}
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*", "*.kv"))
	if err != nil || len(pages) < 2 {
		t.Fatal(pages, err)
	}
	if err := os.Truncate(pages[0], 10); err != nil {
		t.Fatal(err)
	}
	out, err := run(t, "cache", "ls", dir)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2 {
		t.Fatal(out)
	}
	line := strings.Fields(lines[1])
	if line[0] != filepath.Base(filepath.Dir(pages[0])) || line[4] != "f32" || line[7] != "1" || line[8] != "0" {
		t.Error(out)
	}
	server := httptest.NewServer(upstream.New(upstream.Options{}))
	defer server.Close()
	for folder, want := range map[string]string{
		dir: "; 1 damaged", t.TempDir(): "nothing of an engine",
		filepath.Join(dir, "none"): "is not there", pages[1]: "1 problems",
	} {
		out, err := run(t, "doctor", "--engine", server.URL, "--no-probe", "--cache-dir", folder)
		if !strings.Contains(out, want) || (err != nil) != (folder == pages[1]) {
			t.Errorf("doctor of %s: %v\n%s", folder, err, out)
		}
	}
	for _, args := range [][]string{{dir}, {dir, "../x"}, {dir, line[0], "--all"}, {filepath.Join(dir, "none"), "--all"}} {
		if _, err := run(t, append([]string{"cache", "rm"}, args...)...); err == nil {
			t.Errorf("rm %v is no error", args)
		}
	}
	if _, err := run(t, "cache", "rm", dir, line[0]); err != nil {
		t.Error(err)
	}
	if out, err := run(t, "cache", "ls", dir); err != nil || strings.Count(out, "\n") != 1 {
		t.Error(out, err)
	}
}

// TestWarm: the blocks of a folder are computed once, and a chat that reuses blocks takes them from there.
func TestWarm(t *testing.T) {
	dir, model := t.TempDir(), filepath.Join(t.TempDir(), "tiny.gguf")
	if err := localtest.WriteModel(model, 1); err != nil {
		t.Fatal(err)
	}
	computed := func() (blocks, tokens int) {
		t.Helper()
		var out, progress bytes.Buffer
		root := newRoot()
		root.SetArgs([]string{"warm", "--cache-dir", dir, "--model", model})
		root.SetOut(&out)
		root.SetErr(&progress)
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`^(\d+) blocks, (\d+) tokens computed in `).FindStringSubmatch(out.String())
		if m == nil {
			t.Fatalf("%q", out.String())
		}
		blocks, _ = strconv.Atoi(m[1])
		tokens, _ = strconv.Atoi(m[2])
		return blocks, tokens
	}
	blocks, first := computed()
	if _, again := computed(); blocks < 5 || first < 20*blocks || again > blocks {
		t.Errorf("%d blocks: %d tokens computed, and %d by the next run", blocks, first, again)
	}
	const question = "How long may a film be kept on loan?\n"
	out, err := chatWith(t, question+"/new\n"+question, "--model", model, "--cache-dir", dir, "--reuse", "blocks", "--recompute", "0.1",
		"--max-tokens", "3")
	if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile(`(\d+) prompt tokens, (\d+) \(expected: (\d+) of the blocks\) from the cache`).FindAllStringSubmatch(out, -1)
	if len(all) != 2 {
		t.Fatalf("no figures:\n%s", out)
	}
	for i, m := range all { // this process has sent the blocks before the second question alone
		prompt, _ := strconv.Atoi(m[1])
		cached, _ := strconv.Atoi(m[2])
		if expected, _ := strconv.Atoi(m[3]); 10*cached < 7*prompt || i == 0 && expected > 0 || i == 1 &&
			(2*expected < cached || expected > cached) {
			t.Errorf("%d of %d tokens from the cache, %d expected:\n%s", cached, prompt, expected, out)
		}
	}
}

// TestWarmWithoutAFolder: what would be gone at the end is not computed.
func TestWarmWithoutAFolder(t *testing.T) {
	root := newRoot()
	root.SetArgs([]string{"warm"})
	root.SetOut(&bytes.Buffer{})
	root.SetErr(&bytes.Buffer{})
	if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "--cache-dir") {
		t.Error(err)
	}
}
