package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Contexts are served under their names, and a file of another model is refused by the flag's value.
func TestEngineServeContext(t *testing.T) {
	docs, out := t.TempDir(), filepath.Join(t.TempDir(), "lamps.context")
	if err := os.WriteFile(filepath.Join(docs, "a.md"), []byte(strings.Repeat("The lamp is lit. ", 20)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, "compress", "--docs", docs, "--task", "Answer.", "--scorer", "recent", "--out", out, "--model", tinyFile(t)); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	base, said, ended := engineServe(ctx, t, "--context", "lamps="+out)
	for body, want := range map[string]string{
		`{"context":"lamps","messages":[{"role":"user","content":"Is it lit?"}],"max_tokens":3}`: `"cached_tokens":`,
		`{"context":"none","messages":[{"role":"user","content":"Is it lit?"}],"max_tokens":3}`:  `context \"none\": not loaded; there are [\"lamps\"]`,
	} {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(response.Body)
		if err != nil || response.Body.Close() != nil || !strings.Contains(string(data), want) || strings.Contains(string(data), `"cached_tokens":0`) {
			t.Errorf("%s: %d %s, error %v", body, response.StatusCode, data, err)
		}
	}
	if !strings.Contains(said.String(), "context lamps: ") {
		t.Error(said)
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for want, value := range map[string]string{"NAME=FILE": "lamps", "no such file": "lamps=" + out + "x", "damaged": "lamps=" + filepath.Join(docs, "a.md")} {
		if _, err := run(t, "engine", "serve", "--model", tinyFile(t), "--listen", "127.0.0.1:0", "--context", value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", value, err)
		}
	}
}
