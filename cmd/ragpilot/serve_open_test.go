package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// TestServeWarnings: at the start the log names settings without effect and settings that leave a door open.
func TestServeWarnings(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals, other rights of files")
	}
	key, settings := write(t, "key", "long-enough-as-keys-go"), write(t, "open.yaml", "keys: [{tenant: a, key: short}]\n")
	for _, name := range []string{key, settings} {
		if err := os.Chmod(name, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("RAGPILOT_CLOUD_KEY", "x")
	t.Setenv("RAGPILOT_SERVICE_HOST", "10.0.0.1")
	s := startServe(t, "", "--config", settings, "--key-file", key, "--cloud-provider", "openai", "--infer-api-url", "http://localhost:1")
	for _, want := range []string{
		"RAGPILOT_CLOUD_KEY has no effect", key, settings, "keys[0].key has 5 characters",
		"infer_api_url has no effect with cloud_provider",
	} {
		if !strings.Contains(s.log(), want) {
			t.Errorf("no warning of %q in\n%s", want, s.log())
		}
	}
	for _, unwanted := range []string{"RAGPILOT_SERVICE_HOST", "keys[1].key", "short", "long-enough"} {
		if strings.Contains(s.log(), unwanted) {
			t.Errorf("%q is in\n%s", unwanted, s.log())
		}
	}
}

func TestUnknownVariables(t *testing.T) {
	flags := pflag.NewFlagSet("x", pflag.ContinueOnError)
	flags.String("key-file", "", "")
	got := unknownVariables(flags, []string{
		"RAGPILOT_KEY_FILE=a", "RAGPILOT_KEYFILE=b", "PATH=/bin", "RAGPILOT_PORT=tcp://10.0.0.1:1", "RAGPILOT_PORT_8765_TCP_ADDR=10.0.0.1",
		"RAGPILOT_UI_SERVICE_PORT=1", "OTHER_RAGPILOT_X=1",
	})
	if want := []string{"RAGPILOT_KEYFILE has no effect: there is no flag --keyfile"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestServeLimits: each key has a rate and a number of requests at a time of its own, and connections are counted over all.
func TestServeLimits(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	keys := "keys: [{tenant: red, key: " + redKey + "}, {tenant: blue, key: " + blueKey + "}]\n"
	t.Run("rate", func(t *testing.T) {
		s := startServe(t, keys+"limits: {requests_per_second: 0.01}\n")
		red := func() answered { return ask(t, s.main, http.MethodGet, "/requests", "X-Api-Key", redKey) }
		if got := red(); got.code == http.StatusTooManyRequests {
			t.Errorf("the first: %d %s", got.code, got.text)
		}
		if got := red(); got.code != http.StatusTooManyRequests || got.header.Get("Retry-After") != "100" ||
			!strings.Contains(got.text, "0.01 a second") {
			t.Errorf("the second: %d %v %s", got.code, got.header, got.text)
		}
		if got := ask(t, s.main, http.MethodGet, "/requests", "X-Api-Key", blueKey); got.code == http.StatusTooManyRequests {
			t.Errorf("another key: %d %s", got.code, got.text)
		}
		if got := ask(t, s.main, http.MethodGet, "/readyz"); got.code != http.StatusOK {
			t.Errorf("a probe: %d", got.code)
		}
	})
	t.Run("at a time", func(t *testing.T) {
		e := newSeenEngine(t)
		s := startServe(t, "infer_api_url: "+e.URL+"\n"+keys+"limits: {concurrent_requests: 1}\n")
		var conn net.Conn
		waitFor(t, "the first request runs", func() bool {
			if conn != nil { // it may have been refused, as the question below was still running
				_ = conn.Close()
			}
			conn = dialHeld(t, s.main, redKey)
			return ask(t, s.main, http.MethodGet, "/requests", "X-Api-Key", redKey).code == http.StatusTooManyRequests
		})
		if got := ask(t, s.main, http.MethodGet, "/requests", "X-Api-Key", blueKey); got.code == http.StatusTooManyRequests {
			t.Errorf("another key: %d %s", got.code, got.text)
		}
		_ = conn.Close()
		waitFor(t, "there is room again", func() bool {
			return ask(t, s.main, http.MethodGet, "/requests", "X-Api-Key", redKey).code != http.StatusTooManyRequests
		})
	})
	t.Run("connections", func(t *testing.T) {
		s := startServe(t, "limits: {connections: 2}\n")
		first, second := dialTo(t, s.main), dialTo(t, s.main)
		for _, conn := range []net.Conn{first, second} { // an answer shows that it was accepted
			fmt.Fprintf(conn, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
			if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 200 ") {
				t.Fatalf("within the limit: %q %v", line, err)
			}
		}
		text, err := io.ReadAll(dialTo(t, s.main))
		if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 503 ") ||
			!strings.HasSuffix(string(text), `{"detail":"Too many connections are open"}`) {
			t.Errorf("one more: %q %v", text, err)
		}
		if got := ask(t, s.admin, http.MethodGet, "/metrics"); !strings.Contains(got.text, `ragpilot_http_limited_total{limit="connections"} 1`) {
			t.Error("it is not counted")
		}
		_ = first.Close()
		waitFor(t, "there is room again", func() bool {
			conn := dialTo(t, s.main)
			defer conn.Close()
			fmt.Fprintf(conn, "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			text, _ := io.ReadAll(conn)
			return strings.HasPrefix(string(text), "HTTP/1.1 200 ")
		})
	})
}

func dialTo(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// dialHeld sends a request whose body does not end, so that it is being answered for as long as the connection is open.
func dialHeld(t *testing.T, address, key string) net.Conn {
	t.Helper()
	conn := dialTo(t, address)
	fmt.Fprintf(conn, "POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: %s\r\nContent-Length: 10\r\n\r\n{", key)
	return conn
}

// waitFor waits for a condition that nothing reports.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%s: did not happen", what)
		}
	}
}
