package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

// listen accepts connections and does something to each.
func listen(t *testing.T, do func(net.Conn)) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			do(conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-ended
	})
	return "http://" + l.Addr().String()
}

// Clients get the kind of failure, and no address; the log has all of it and the request's ID.
func TestFailures(t *testing.T) {
	refused := httptest.NewServer(nil)
	refused.Close()
	takesRequest := func(then func(net.Conn)) func(net.Conn) {
		return func(conn net.Conn) {
			if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = io.Copy(io.Discard, r.Body) // what is left of it would reset the connection
			}
			then(conn)
		}
	}
	for _, c := range []struct {
		name, upstream string
		code           int
		kind           string
	}{
		{"refused", refused.URL, http.StatusBadGateway, "connection refused"},
		{"unknown host", "http://engine.secret-host.invalid", http.StatusBadGateway, "host not found"},
		{"no TLS", strings.Replace(
			listen(t, takesRequest(func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.0 400 Bad Request\r\n\r\n") })), "http", "https", 1,
		), http.StatusBadGateway, "TLS handshake failed"},
		{"slow", listen(t, takesRequest(func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })), http.StatusGatewayTimeout, "timeout"},
		{"closed", listen(t, takesRequest(func(net.Conn) {})), http.StatusBadGateway, "connection closed"},
		{"reset", listen(
			t, takesRequest(func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) }),
		), http.StatusBadGateway, "connection reset"},
		{"no HTTP", listen(
			t, takesRequest(func(c net.Conn) { _, _ = io.WriteString(c, "220 mail.secret-host ESMTP\r\n\r\n") }),
		), http.StatusBadGateway, "no valid answer"},
		{"no status", listen(
			t, takesRequest(func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 099 x\r\nContent-Length: 0\r\n\r\n") }),
		), http.StatusBadGateway, "status 099"},
	} {
		t.Run(c.name, func(t *testing.T) {
			base, err := url.Parse(c.upstream)
			if err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			p := newProxy(t, newEngine(t), func(o *proxy.Options) {
				o.Upstream, o.Transport = base, proxy.NewTransport(5*time.Second, 300*time.Millisecond)
				o.Log = slog.New(slog.NewTextHandler(&log, nil))
				o.RequestID = func(context.Context) string { return "the-id" }
			})
			for path, whose := range map[string]string{
				chatPath: "Backend error", "/v1/completions": "Inference engine backend error",
				"/v1/embeddings": "Inference engine backend error",
			} {
				log.Reset()
				w := post(p, path, "", chat("s", "q"))
				var got struct{ Detail string }
				if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != c.code || got.Detail != whose+": "+c.kind {
					t.Errorf("%s: %d %s, want %d %q; log: %s", path, w.Code, w.Body, c.code, whose+": "+c.kind, &log)
				}
				for _, secret := range []string{base.Hostname(), base.Port()} {
					if secret != "" && strings.Contains(w.Body.String(), secret) {
						t.Errorf("the client gets %q", secret)
					}
				}
				if !strings.Contains(log.String(), "request_id=the-id") || !strings.Contains(log.String(), "error=") {
					t.Errorf("log: %s", &log)
				}
			}
		})
	}
}

// A client's own version of Anthropic's API stays; without one it is the sidecar's.
func TestAnthropicVersion(t *testing.T) {
	for sent, want := range map[string]string{"": "2023-06-01", "2024-10-22": "2024-10-22"} {
		e := newEngine(t)
		p := newProxy(t, e, func(o *proxy.Options) { o.Provider = anthropicAt(t, o.Upstream) })
		post(p, "/v1/messages", "", chat("s", "q"), "Anthropic-Version", sent, "X-Api-Key", "the client's")
		post(p, "/v1/messages/count_tokens", "", chat("s", "q"), "Anthropic-Version", sent)
		for i, h := range e.heads {
			if got := h.Values("Anthropic-Version"); len(got) != 1 || got[0] != want || h.Get("X-Api-Key") != "key" {
				t.Errorf("request %d, sent %q: forwarded %q, want %q", i, sent, got, want)
			}
		}
	}
}
