package sidecar_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// An engine that sends the text of an answer where a head is expected has nothing of it in the log: not when it is asked what it can
// do, nor when a request is forwarded or a memory extracted.
func TestMalformedHeadsAreNotLogged(t *testing.T) {
	var asked atomic.Int64
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	answers := []string{
		"CANARY said the model\r\n\r\n", "HTTP/1.1 CANARY\r\n\r\n", "HTTP/1.1 200 OK\r\nCANARY\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nCANARY\r\n",
	}
	var running sync.WaitGroup
	running.Go(func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
				asked.Add(1)
				_, _ = io.WriteString(c, answers[n%len(answers)])
			}
			_ = c.Close()
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	f := followAs(t, newKVEngine(t), nil, func(c *settings.Config) {
		c.InferAPIURL, c.Memory.Dir, c.Memory.Extract, c.Memory.Model, c.Memory.Embedder = "http://"+l.Addr().
			String(),
			t.TempDir(), "add-only", "m", "lexical"
		for range answers {
			name := fmt.Sprint("engine-", len(c.Engines))
			c.Engines = append(c.Engines, settings.Engine{Name: name, Kind: "vllm", Events: "tcp://127.0.0.1:1", Models: []string{name}})
		}
	})
	front := httptest.NewServer(f.api)
	defer front.Close()
	for range answers {
		for path, body := range readPaths {
			if strings.HasPrefix(path, "/v1/") || path == "/memories" {
				req := testkit.Request(t, http.MethodPost, front.URL+path, strings.NewReader(body))
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					continue // it broke off
				}
				text, _ := io.ReadAll(resp.Body) // it may break off
				_ = resp.Body.Close()
				if strings.Contains(string(text), "CANARY") {
					t.Errorf("%s: %d %s", path, resp.StatusCode, text)
				}
			}
		}
	}
	await(t, "failures are in the log", func() bool {
		text := f.log.String()
		return strings.Contains(text, "upstream failed") && strings.Contains(text, "msg=memory") &&
			strings.Count(text, "cannot be asked") == len(answers)
	})
	t.Logf("%d requests; log:\n%s", asked.Load(), f.log)
	if strings.Contains(f.log.String(), "CANARY") {
		t.Error("the log quotes the engine")
	}
}
