package proxy_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

// canary is what the model said, and no log.
const canary = "CANARY"

// malformed are answers with a part of a text where HTTP has something else to say. What is not passed on is refused with 502.
var malformed = map[string]struct {
	answer string
	begins bool // there is an answer, which breaks off
}{
	"text":                   {"CANARY said the model, and more\r\n\r\n", false},
	"text without an end":    {"CANARY said the model, and more", false},
	"an event":               {"data: {\"text\":\"CANARY\"}\n\n", false},
	"a status line's end":    {"HTTP/1.1CANARY\r\n\r\n", false},
	"a version":              {"CANARY/1.1 200 OK\r\n\r\n", false},
	"another version":        {"HTTP/CANARY 200 OK\r\n\r\n", false},
	"a status":               {"HTTP/1.1 CANARY OK\r\n\r\n", false},
	"a long status":          {"HTTP/1.1 200CANARY OK\r\n\r\n", false},
	"a negative status":      {"HTTP/1.1 -20 CANARY\r\n\r\n", false},
	"a header line":          {"HTTP/1.1 200 OK\r\nCANARY said the model\r\n\r\n", false},
	"the first header line":  {"HTTP/1.1 200 OK\r\n CANARY: x\r\n\r\n", false},
	"no name":                {"HTTP/1.1 200 OK\r\n: CANARY\r\n\r\n", false},
	"a header's value":       {"HTTP/1.1 200 OK\r\nX: \x00CANARY\r\n\r\n", false},
	"a length":               {"HTTP/1.1 200 OK\r\nContent-Length: CANARY\r\n\r\n", false},
	"two lengths":            {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4CANARY\r\n\r\n", false},
	"a transfer encoding":    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: CANARY\r\n\r\n", false},
	"two transfer encodings": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: CANARY\r\n\r\n", false},
	"a trailer's name":       {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Content-Length, CANARY\r\n\r\n0\r\n\r\n", false},
	"a protocol":             {"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: CANARY\r\n\r\n", false},
	"behind an interim":      {"HTTP/1.1 103 Early Hints\r\n\r\nCANARY said the model\r\n\r\n", false},
	"a head that breaks off": {"HTTP/1.1 200 OK\r\nX: CANARY", false},
	"a chunk's length":       {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nCANARY\r\n", true},
	"a later chunk's length": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nCANARY\r\n", true},
	"a chunk's end":          {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}CANARY\r\n", true},
	"a trailer": {
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2\r\n{}\r\n0\r\nCANARY said the model\r\n\r\n", true,
	},
	"a trailer's end":         {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: CANARY", true},
	"a length of a long line": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("0", 5000) + canary, true},
}

// rawEngine answers each request with the same bytes and closes the connection.
func rawEngine(t *testing.T, answer string, config *tls.Config) *url.URL {
	t.Helper()
	return connections(t, config, func(c net.Conn, r *bufio.Reader, _ int) {
		if arrives(r) {
			_, _ = io.WriteString(c, answer)
		}
	})
}

// connections serves each connection by hand. They are numbered from 0.
func connections(t *testing.T, config *tls.Config, serve func(c net.Conn, r *bufio.Reader, nth int)) *url.URL {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	scheme := "http"
	if config != nil {
		l, scheme = tls.NewListener(l, config), "https"
	}
	var running sync.WaitGroup
	running.Go(func() {
		for nth := 0; ; nth++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer c.Close()
				serve(c, bufio.NewReader(c), nth)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	return &url.URL{Scheme: scheme, Host: l.Addr().String()}
}

// arrives reads a whole request.
func arrives(r *bufio.Reader) bool {
	req, err := http.ReadRequest(r)
	if err == nil {
		_, err = io.Copy(io.Discard, req.Body)
	}
	return err == nil
}

// What an engine sends where a head, a chunk or a trailer is expected may be a part of an answer. The log and the client are
// given what is wrong with it, and none of its bytes.
func TestMalformedAnswersAreNotQuoted(t *testing.T) {
	secure := httptest.NewTLSServer(nil)
	defer secure.Close()
	config := &tls.Config{Certificates: secure.TLS.Certificates, MinVersion: tls.VersionTLS12}
	short, long := chat("s", "q"), chat("s", strings.Repeat("a long question ", 20_000))
	for _, way := range []struct {
		name, body string
		tls        *tls.Config
	}{{"short", short, nil}, {"long", long, nil}, {"https", short, config}} {
		for name, c := range malformed {
			t.Run(way.name+"/"+name, func(t *testing.T) {
				transport := proxy.NewTransport(5*time.Second, 5*time.Second)
				transport.TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
				defer transport.CloseIdleConnections()
				var log bytes.Buffer
				p := newProxy(t, newEngine(t), func(o *proxy.Options) {
					o.Upstream, o.Transport = rawEngine(t, c.answer, way.tls), transport
					o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
				})
				for _, path := range []string{chatPath, "/v1/completions", "/v1/embeddings"} {
					log.Reset()
					w := post(p, path, "", way.body)
					if !c.begins && (!strings.Contains(log.String(), "status=502 error=") ||
						!strings.Contains(w.Body.String(), "ackend error: ")) {
						t.Errorf("%s: %d %s; log: %s", path, w.Code, w.Body, &log)
					}
					if c.begins && !strings.Contains(log.String(), "level=WARN") {
						t.Errorf("%s: the log does not say that the answer broke off: %d %s", path, w.Code, &log)
					}
					for what, text := range map[string]string{"log": log.String(), "answer": w.Body.String()} {
						if strings.Contains(strings.ToUpper(text), canary) {
							t.Errorf("%s: the %s quotes the engine: %s", path, what, text)
						}
					}
				}
			})
		}
	}
}
