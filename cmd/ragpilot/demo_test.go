package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ragpilot/ragpilot/internal/testkit"
)

func TestDemo(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "demo.html")
	out, err := run(t, "demo", "--engine", "sim", "--out", picture)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"simulator", "not a measurement", "Saving: ", "Mean overlap", "Same set of blocks"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q", want)
		}
	}
	page, err := os.ReadFile(picture)
	if err != nil || !strings.Contains(string(page), "</html>") {
		t.Errorf("picture of %d bytes, error %v", len(page), err)
	}
	entries, err := os.ReadDir(filepath.Dir(picture))
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files beside the picture, error %v", len(entries)-1, err)
	}
}

func TestDemoOwnDocuments(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"pump", "valve", "boiler", "motor"} {
		text := "# The " + name + "\n\n## Install\n\nPut the " + name + " in.\n\n## Run\n\nSwitch the " + name +
			" on.\n\n## Service\n\nOil the " + name + ".\n\n## Faults\n\nThe " + name + " rattles.\n"
		if err := os.WriteFile(filepath.Join(dir, name+".md"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := run(t, "demo", "--docs", dir, "--out", "", "--capacity", "2000")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "16 questions of 4 users") || !strings.Contains(out, "cache of 2000 tokens") {
		t.Errorf("output:\n%s", out)
	}
}

// serve answers chats; from the request with number dies on it breaks off in the middle.
func serve(t *testing.T, dies int64) *httptest.Server {
	t.Helper()
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"An answer."}}]}`+"\n\n")
		if dies > 0 && n.Add(1) >= dies {
			return
		}
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n"+
			`data: {"choices":[],"usage":{"prompt_tokens":640,"completion_tokens":4}}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(server.Close)
	return server
}

func TestDemoRealEngineWithoutCachedTokens(t *testing.T) {
	server := serve(t, 0)
	out, err := run(t, "demo", "--engine", server.URL, "--model", "m", "--out", "")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, server.URL) || !strings.Contains(out, "unknown") || !strings.Contains(out, "no saving is claimed") {
		t.Errorf("output:\n%s", out)
	}
}

func TestDemoErrors(t *testing.T) {
	gone := "http://" + testkit.FreeAddress(t)
	dying := serve(t, 30)
	script := write(t, "script.jsonl", `{"user":"a","turn":1,"question":"x"}`+"\n"+`{"user":"a","turn":1,"question":"y"}`)
	tests := []struct {
		name string
		args []string
		want []string
	}{
		{"profile", []string{"--profile", "reckless"}, []string{"--profile", "reckless", "most-reuse"}},
		{"policy", []string{"--policy", "best-guess"}, []string{"--policy", "best-guess", "sorted"}},
		{"k", []string{"--k", "0"}, []string{"--k 0"}},
		{"capacity", []string{"--capacity", "much"}, []string{"--capacity", "much"}},
		{"capacity of an engine", []string{"--engine", "http://127.0.0.1:1", "--capacity", "5"}, []string{"--capacity"}},
		{"engine is no URL", []string{"--engine", "localhost"}, []string{"--engine", "localhost"}},
		{"engine unreachable", []string{"--engine", gone, "--model", "m"}, []string{gone, "unreachable"}},
		{"engine dies", []string{"--engine", dying.URL, "--model", "m"}, []string{dying.URL, "interrupted", "with ragpilot: request ben-2"}},
		{"no folder", []string{"--docs", filepath.Join(t.TempDir(), "none")}, []string{"--docs", "none"}},
		{"empty folder", []string{"--docs", t.TempDir()}, []string{"--docs", "no blocks"}},
		{"no script", []string{"--script", "none.jsonl"}, []string{"--script", "none.jsonl"}},
		{"bad script", []string{"--script", script}, []string{"--script", "line 2", `"turn" is 1, want 2`}},
		{"no place for the picture", []string{"--out", filepath.Join(t.TempDir(), "none", "x.html")}, []string{"--out", "none"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			args := append([]string{"demo", "--out", ""}, tc.args...)
			out, err := run(t, args...)
			if err == nil || out != "" {
				t.Fatalf("error %v, output %q; want an error and nothing printed", err, out)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
		})
	}
}
