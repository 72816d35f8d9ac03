package main

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local/localtest"
)

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
	out, err := chatWith(t, question+"/new\n"+question, "--model", model, "--cache-dir", dir, "--reuse", "blocks", "--recompute", "0.1", "--max-tokens", "3")
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
		if expected, _ := strconv.Atoi(m[3]); 10*cached < 7*prompt || i == 0 && expected > 0 || i == 1 && (2*expected < cached || expected > cached) {
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
