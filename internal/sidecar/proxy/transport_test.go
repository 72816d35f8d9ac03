package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
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
)

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
		"before the request was read": {func(c net.Conn, _ *bufio.Reader) {
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
