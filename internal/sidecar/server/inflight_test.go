package server_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/reqbody"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// readsBodies is an API that keeps bodies until goOn is closed, and passes those to /v1/embeddings.
func readsBodies(goOn <-chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/embeddings" {
			n, _ := io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, strings.Repeat(".", int(n/1000)))
			return
		}
		if _, err := reqbody.ReadAll(r); err != nil {
			http.Error(w, "cannot read: "+err.Error(), http.StatusBadRequest)
			return
		}
		<-goOn
	}
}

// TestBodiesInFlight: bodies that are in memory together are bounded. One that finds no room is answered 503, one that
// passes needs none, and when bodies have gone there is room again.
func TestBodiesInFlight(t *testing.T) {
	goOn := make(chan struct{})
	r := start(t, onFreePorts(func(c *settings.Config) {
		c.Limits.BodyBytes, c.Limits.InFlightBytes, c.Timeouts.InFlight = 400_000, 1_000_000, 20*time.Millisecond
	}), readsBodies(goOn))
	text := strings.Repeat("x", 300_000)
	gauge := func(want string) func() bool {
		return func() bool {
			return strings.Contains(r.get(t, r.admin+"/metrics").body, "ragpilot_http_body_bytes_in_flight "+want+"\n")
		}
	}
	var held sync.WaitGroup
	for range 3 {
		held.Go(func() {
			if got := r.ask(t, http.MethodPost, r.url+"/v1/completions", strings.NewReader(text)); got.code != http.StatusOK {
				t.Errorf("a body that fits: %d %s", got.code, got.body)
			}
		})
	}
	testkit.Eventually(t, "three bodies", gauge("900003"))
	for name, body := range map[string]io.Reader{"length": strings.NewReader(text), "chunked": chunked(text)} {
		got := r.ask(t, http.MethodPost, r.url+"/v1/completions", body)
		if got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "1" ||
			got.body != `{"detail":"Too many bytes of requests are being worked on, try again"}` {
			t.Errorf("%s: %d %v %s", name, got.code, got.header, got.body)
		}
	}
	if got := r.ask(t, http.MethodPost, r.url+"/v1/embeddings", strings.NewReader(text)); got.code != http.StatusOK || len(got.body) != 300 {
		t.Errorf("a body that passes: %d, %d", got.code, len(got.body))
	}
	if got := r.ask(t, http.MethodPost, r.url+"/v1/embeddings", strings.NewReader("small")); got.code != http.StatusOK {
		t.Errorf("a small one: %d", got.code)
	}
	testkit.Contains(t, "metrics", r.get(t, r.admin+"/metrics").body, "ragpilot_http_bodies_refused_total 2")
	close(goOn)
	held.Wait()
	testkit.Eventually(t, "no bodies", gauge("0"))
	if got := r.ask(t, http.MethodPost, r.url+"/v1/completions", strings.NewReader(text)); got.code != http.StatusOK {
		t.Errorf("afterwards: %d %s", got.code, got.body)
	}
}

// TestWaitingForRoom: a body that finds room in time is served.
func TestWaitingForRoom(t *testing.T) {
	goOn := make(chan struct{})
	r := start(
		t,
		onFreePorts(func(c *settings.Config) { c.Limits.InFlightBytes, c.Timeouts.InFlight = 250_000, testkit.Patience }),
		readsBodies(goOn),
	)
	text := strings.Repeat("x", 100_000)
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if got := r.ask(t, http.MethodPost, r.url+"/v1/completions", strings.NewReader(text)); got.code != http.StatusOK {
				t.Errorf("%d %s", got.code, got.body)
			}
		})
	}
	testkit.Eventually(t, "requests", func() bool {
		return strings.Contains(r.get(t, r.admin+"/metrics").body, "ragpilot_http_requests_in_flight 5")
	})
	close(goOn)
	all.Wait()
}

// TestLameDuck: when it is to stop, the server says that it is not ready and goes on for a while, so that balancers see it before
// the listener is gone; its answers end their connections.
func TestLameDuck(t *testing.T) {
	const pause = 3 * time.Second // in which a busy machine gets to a request, too
	r := start(t, onFreePorts(func(c *settings.Config) { c.Timeouts.LameDuck = pause }), hello)
	if got := r.get(t, r.url+"/"); got.header.Get("Connection") != "" {
		t.Errorf("connection: %v", got.header)
	}
	began := time.Now()
	r.cancel()
	testkit.Eventually(t, "readyz turns 503", func() bool { return r.get(t, r.url+"/readyz").code == http.StatusServiceUnavailable })
	conn := dial(t, r.Addr())
	say(t, conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi")
	text, err := io.ReadAll(conn) // until the server closes it
	if err != nil || !strings.Contains(string(text), "\r\nConnection: close\r\n") || !strings.HasSuffix(string(text), "hello") {
		t.Errorf("a new request: %q, %v", text, err)
	}
	if got := r.get(t, r.admin+"/healthz"); got.code != http.StatusOK {
		t.Errorf("healthz: %d", got.code)
	}
	if err := r.stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
	if took := time.Since(began); took < pause {
		t.Errorf("the listener was closed after %v", took)
	}
	testkit.Contains(t, "log", r.log.String(), "requests are still taken")
}
