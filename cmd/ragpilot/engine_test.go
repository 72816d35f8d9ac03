package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines/local/localtest"
)

// lines is what a command says, to be read while it runs.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var engineAddress = regexp.MustCompile(`listening on (http://\S+)`)

// tinyFile writes a model.
func tinyFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := localtest.WriteModel(file, 1); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestEngineServe: the command answers, says where its events are, is well by the doctor, and ends when it is told to.
func TestEngineServe(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var said lines
	cmd := newRoot()
	cmd.SetOut(&said)
	cmd.SetErr(io.Discard)
	cmd.SetArgs([]string{
		"engine", "serve", "--model", tinyFile(t), "--listen", "127.0.0.1:0", "--threads", "1", "--kv-events", "tcp://127.0.0.1:0", "--kv-replay", "tcp://127.0.0.1:0",
	})
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	var base string
	for end := time.Now().Add(30 * time.Second); base == ""; time.Sleep(time.Millisecond) {
		if found := engineAddress.FindStringSubmatch(said.String()); found != nil {
			base = found[1]
		}
		if time.Now().After(end) {
			t.Fatalf("it does not listen:\n%s", said.String())
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/v1/chat/completions", strings.NewReader(`{"model":"tiny","messages":[{"role":"user","content":"a"}],"max_tokens":2}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct{ Choices []json.RawMessage }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || len(answer.Choices) != 1 {
		t.Errorf("%+v, %v", answer, err)
	}
	_ = resp.Body.Close()
	var report lines
	doctor := newRoot()
	doctor.SetOut(&report)
	doctor.SetArgs([]string{"doctor", "--engine", base, "--probe-tokens", "200"})
	if err := doctor.ExecuteContext(t.Context()); err != nil || !strings.Contains(report.String(), " 0 warnings, 0 problems, 0 not known") {
		t.Errorf("%v\n%s", err, report.String())
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if out := said.String(); !strings.Contains(out, "cache events at tcp://127.0.0.1:") || !strings.Contains(out, "prompt tokens from the cache") {
		t.Errorf("said:\n%s", out)
	}
}

func TestEngineServeRefused(t *testing.T) {
	file := tinyFile(t)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no file":             {[]string{"--model", "./nothing.gguf"}, "--model"},
		"an unknown name":     {[]string{"--model", "zebra"}, "zebra"},
		"no address":          {[]string{"--model", file, "--listen", "nowhere"}, "--listen"},
		"replay without more": {[]string{"--model", file, "--kv-replay", "tcp://127.0.0.1:0"}, "--kv-replay"},
		"a bad endpoint":      {[]string{"--model", file, "--listen", "127.0.0.1:0", "--kv-events", "inproc://x"}, "inproc"},
		"no threads":          {[]string{"--model", file, "--listen", "127.0.0.1:0", "--threads", "-1"}, "Threads -1"},
		"a cache too small":   {[]string{"--model", file, "--listen", "127.0.0.1:0", "--cache-bytes", "1"}, "1 byte"},
		"an argument":         {[]string{"x"}, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := newRoot()
			cmd.SetOut(io.Discard)
			cmd.SetErr(io.Discard)
			cmd.SetArgs(append([]string{"engine", "serve"}, c.args...))
			if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want something about %q", err, c.want)
			}
		})
	}
}
