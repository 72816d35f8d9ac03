package server_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/server"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// stream asks for an answer that is read by the caller.
func (r *running) stream(t *testing.T, path string) io.Reader {
	t.Helper()
	req := testkit.Request(t, http.MethodPost, r.url+path, strings.NewReader("{}"))
	res, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res.Body
}

// TestDrain: answers that are under way when the server stops are sent in full; later requests are refused.
func TestDrain(t *testing.T) {
	const tokens = 1000
	goOn := make(chan struct{})
	r := start(t, onFreePorts(), func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for i := range tokens {
			_, _ = io.WriteString(w, "data: token\n\n")
			_ = http.NewResponseController(w).Flush()
			if i == 0 {
				<-goOn
			}
		}
		if r.Context().Err() != nil {
			t.Error("the context of a running answer ended")
		}
	})
	if got := r.get(t, r.admin+"/readyz"); got.code != http.StatusOK || got.body != `{"status":"ready"}` {
		t.Errorf("ready: %d %s", got.code, got.body)
	}
	answer := r.stream(t, "/v1/completions")
	first := make([]byte, len("data: token\n\n"))
	if _, err := io.ReadFull(answer, first); err != nil {
		t.Fatal(err)
	}
	r.cancel()
	testkit.Eventually(t, "readyz turns 503", func() bool { return r.get(t, r.admin+"/readyz").code == http.StatusServiceUnavailable })
	var why struct{ Status, Reason string }
	if got := r.get(t, r.admin+"/readyz"); json.Unmarshal([]byte(got.body), &why) != nil || why.Status != "not_ready" ||
		!strings.Contains(why.Reason, "draining") {
		t.Errorf("readyz: %s", got.body)
	}
	if got := r.get(t, r.admin+"/healthz"); got.code != http.StatusOK {
		t.Errorf("healthz while draining: %d", got.code)
	}
	testkit.Eventually(t, "the listener closes", func() bool {
		var d net.Dialer
		conn, err := d.DialContext(t.Context(), "tcp", r.Addr())
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	testkit.Contains(t, "metrics", r.get(t, r.admin+"/metrics").body, "ragpilot_http_requests_in_flight 1")
	close(goOn)
	rest, err := io.ReadAll(answer)
	if err != nil {
		t.Errorf("the stream broke off: %v", err)
	}
	if got, want := string(first)+string(rest), strings.Repeat("data: token\n\n", tokens); got != want {
		t.Errorf("%d of %d bytes", len(got), len(want))
	}
	if err := r.stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// TestCut: what has not ended in the time for draining is cut, and Run says how much that was.
func TestCut(t *testing.T) {
	ended := make(chan struct{}, 2)
	r := start(
		t,
		onFreePorts(func(c *settings.Config) { c.Timeouts.Drain = 20 * time.Millisecond }),
		func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done() // as a proxy does whose engine has not answered
			ended <- struct{}{}
		},
	)
	one, two := r.stream(t, "/v1/completions"), r.stream(t, "/v1/messages")
	err := r.stop()
	if err == nil || !strings.Contains(err.Error(), ": 2") || !strings.Contains(err.Error(), "20ms") {
		t.Errorf("Run: %v", err)
	}
	if len(ended) != 2 {
		t.Errorf("%d of 2 handlers had returned when Run did", len(ended))
	}
	for _, answer := range []io.Reader{one, two} {
		if _, err := io.ReadAll(answer); err == nil {
			t.Error("a client takes a cut answer for a whole one")
		}
	}
}

// TestIdleConnectionsDoNotDelay: connections that wait for a request are closed at once.
func TestIdleConnectionsDoNotDelay(t *testing.T) {
	r := start(t, onFreePorts(func(c *settings.Config) { c.Timeouts.Drain = time.Hour }), hello)
	r.get(t, r.url+"/") // its connection stays open
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

func TestReadyOnlyWhileRunning(t *testing.T) {
	s, err := server.New(onFreePorts(), http.HandlerFunc(hello), server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Addr() != "" || s.AdminAddr() != "" {
		t.Errorf("addresses before Run: %q, %q", s.Addr(), s.AdminAddr())
	}
	asked := record(s.Admin(), "/readyz")
	if asked.code != http.StatusServiceUnavailable || !strings.Contains(asked.body, "starting") {
		t.Errorf("before Run: %d %s", asked.code, asked.body)
	}
	if asked := record(s.Admin(), "/healthz"); asked.code != http.StatusOK {
		t.Errorf("healthz before Run: %d", asked.code)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = s.Run(ctx)
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("second Run: %v", err)
	}
}

func taken(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// TestPortTaken: without its main address the server cannot do anything, without its admin address it can.
func TestPortTaken(t *testing.T) {
	address := taken(t)
	s, err := server.New(onFreePorts(func(c *settings.Config) { c.Listen = address }), http.HandlerFunc(hello), server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), address) {
		t.Errorf("main address taken: %v", err)
	}
	r := start(t, onFreePorts(func(c *settings.Config) { c.AdminAddr = address }), hello)
	if got := r.get(t, r.url+"/"); got.body != "hello" {
		t.Errorf("admin address taken: %d %s", got.code, got.body)
	}
	testkit.Contains(t, "log", r.log.String(), "level=WARN", "no admin listener", address)
	if r.AdminAddr() != "" {
		t.Errorf("admin address %q", r.AdminAddr())
	}
}

func TestNoAdminListener(t *testing.T) {
	r := start(t, onFreePorts(func(c *settings.Config) { c.AdminAddr = "" }), hello)
	for path, want := range map[string]string{"/metrics": "hello", "/debug/pprof/": "hello", "/readyz": `{"status":"ready"}`} {
		if got := r.get(t, r.url+path); got.body != want {
			t.Errorf("%s on the main listener: %d %s", path, got.code, got.body)
		}
	}
	if strings.Contains(r.log.String(), "WARN") {
		t.Errorf("log: %s", r.log)
	}
}

func TestAdminRoutes(t *testing.T) {
	r := start(t, onFreePorts(func(c *settings.Config) { c.Keys, c.Pprof = twoTeams, true }), hello)
	r.Admin().HandleFunc("/ui", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "picture") })
	for path, want := range map[string]string{
		"/healthz": `{"status":"ok"}`, "/readyz": `{"status":"ready"}`, "/metrics": "ragpilot_http_requests_in_flight", "/ui": "picture",
		"/debug/pprof/": "goroutine", "/debug/pprof/heap?debug=1": "heap profile", "/debug/pprof/symbol": "num_symbols",
	} {
		if got := r.get(t, r.admin+path); got.code != http.StatusOK || !strings.Contains(got.body, want) {
			t.Errorf("%s: %d %.200s", path, got.code, got.body)
		}
	}
	for _, path := range []string{"/reorder", "/debug/pprof/cmdline"} { // a command line may hold keys
		if got := r.get(t, r.admin+path); got.code != http.StatusNotFound {
			t.Errorf("%s on the admin listener: %d", path, got.code)
		}
	}
	plain := start(t, onFreePorts(), hello)
	for _, path := range []string{"", "heap", "goroutine", "cmdline", "profile", "symbol", "trace"} {
		if got := plain.get(t, plain.admin+"/debug/pprof/"+path); got.code != http.StatusNotFound {
			t.Errorf("profile %q without pprof: %d", path, got.code)
		}
	}
}

func TestNoAPI(t *testing.T) {
	if _, err := server.New(onFreePorts(), nil, server.Options{}); err == nil {
		t.Error("a server without an API")
	}
}
