package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
	"github.com/ragpilot/ragpilot/internal/testkit"
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
	refused := "http://" + testkit.FreeAddress(t)
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
		{"refused", refused, http.StatusBadGateway, "connection refused"},
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
				transport.Other.(*http.Transport).TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
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

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// proxyTo returns a proxy in front of an upstream, which waits so long for the headers of an answer.
func proxyTo(t *testing.T, upstream *url.URL, header time.Duration) *proxy.Proxy {
	t.Helper()
	transport := proxy.NewTransport(5*time.Second, header)
	t.Cleanup(transport.CloseIdleConnections)
	return newProxy(t, newEngine(t), func(o *proxy.Options) { o.Upstream, o.Transport = upstream, transport })
}

// Requests that follow one another use one connection, unless the upstream sent more than an answer.
func TestConnectionsAreKept(t *testing.T) {
	for behind, want := range map[string]int32{"": 1, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil": 3} {
		var dialled atomic.Int32
		p := proxyTo(t, connections(t, nil, func(c net.Conn, r *bufio.Reader, _ int) {
			dialled.Add(1)
			for arrives(r) {
				_, _ = io.WriteString(c, okAnswer+behind)
			}
		}), time.Minute)
		for range 3 {
			if w := post(p, "/v1/embeddings", "", "{}"); w.Code != http.StatusOK || w.Body.String() != "ok" {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			time.Sleep(10 * time.Millisecond) // what is too much arrives
		}
		if n := dialled.Load(); n != want {
			t.Errorf("%d connections, want %d", n, want)
		}
	}
}

// A request with a body is never sent a second time; one without is, if its connection was an old one.
func TestBrokenConnection(t *testing.T) {
	for method, want := range map[string]int32{http.MethodPost: http.StatusBadGateway, http.MethodGet: http.StatusOK} {
		var arrived atomic.Int32
		p := proxyTo(t, connections(t, nil, func(c net.Conn, r *bufio.Reader, nth int) {
			for n := 0; arrives(r); n++ {
				arrived.Add(1)
				if nth == 0 && n == 1 {
					return // the second request of the first connection gets no answer
				}
				_, _ = io.WriteString(c, okAnswer)
			}
		}), time.Minute)
		ask := func() int32 {
			if method == http.MethodGet {
				return int32(get(p, "/v1/models", "").Code)
			}
			return int32(post(p, chatPath, "", chat("s", "q")).Code)
		}
		first := ask()
		second := ask()
		sent := map[string]int32{http.MethodPost: 2, http.MethodGet: 3}[method]
		if first != http.StatusOK || second != want || arrived.Load() != sent {
			t.Errorf("%s: %d, then %d, want %d; %d requests arrived, want %d", method, first, second, want, arrived.Load(), sent)
		}
	}
}

// Answers that come early, late, after interim ones, or have no end.
func TestUnusualAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		serve func(c net.Conn, r *bufio.Reader)
		code  int
		text  string // the answer begins with it
		slow  bool   // its body takes longer than its headers may
	}{
		"before the body was read": {func(c net.Conn, r *bufio.Reader) {
			_, _ = r.ReadString('\n')
			_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbig")
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, c)
		}, http.StatusRequestEntityTooLarge, "big", false},
		"slow": {func(c net.Conn, r *bufio.Reader) {
			_ = arrives(r)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")
			time.Sleep(200 * time.Millisecond)
			_, _ = io.WriteString(c, "k")
		}, http.StatusOK, "ok", true},
		"behind an interim one": {func(c net.Conn, r *bufio.Reader) {
			_ = arrives(r)
			_, _ = io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n"+okAnswer)
		}, http.StatusOK, "ok", false},
		"endless headers": {func(c net.Conn, r *bufio.Reader) {
			_ = arrives(r)
			line := bytes.Repeat([]byte("X-A: "+long(1000)+"\r\n"), 1000)
			for _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n"); err == nil; {
				_, err = c.Write(line)
			}
		}, http.StatusBadGateway, `{"detail":"Backend error: `, false},
	} {
		t.Run(name, func(t *testing.T) {
			header := time.Minute
			if c.slow {
				header = 100 * time.Millisecond
			}
			front := httptest.NewServer(
				proxyTo(t, connections(t, nil, func(conn net.Conn, r *bufio.Reader, _ int) { c.serve(conn, r) }), header),
			)
			defer front.Close()
			resp := send(t.Context(), t, front, chatPath, chat("s", long(200_000))) //nolint:bodyclose // by t.Cleanup
			if text, err := io.ReadAll(resp.Body); resp.StatusCode != c.code || !strings.HasPrefix(string(text), c.text) || err != nil {
				t.Errorf("%d %s, %v", resp.StatusCode, text, err)
			}
		})
	}
}

// Many at once, some of them cancelled: each gets its own answer.
func TestManyAtOnce(t *testing.T) {
	e := newEngine(t)
	e.answer = func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("X-Own")) }
	p := newProxy(t, e, nil)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 100 {
				ctx, cancel := context.WithCancel(t.Context())
				if i%7 == 0 {
					go cancel()
				}
				own := fmt.Sprintf("%d/%d", g, i)
				r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/embeddings", strings.NewReader("{}"))
				r.Header.Set("X-Own", own)
				w := httptest.NewRecorder()
				func() {
					defer func() { // an answer that breaks off ends its handler
						if caught := recover(); caught != nil && caught != http.ErrAbortHandler { //nolint:errorlint // the value itself
							panic(caught)
						}
					}()
					p.ServeHTTP(w, r)
				}()
				if text := w.Body.String(); w.Code == http.StatusOK && text != own && !strings.HasPrefix(own, text) ||
					w.Code != http.StatusOK && i%7 != 0 {
					t.Errorf("%s: %d %s", own, w.Code, text)
				}
				cancel()
			}
		})
	}
	all.Wait()
}
