package server_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// chunked hides the length of a body.
func chunked(text string) io.Reader { return struct{ io.Reader }{strings.NewReader(text)} }

func TestBodyLimit(t *testing.T) {
	read := make(chan error, 1)
	r := start(
		t,
		onFreePorts(func(c *settings.Config) { c.Limits.BodyBytes = 1000; c.Keys = []settings.Key{{Key: "k"}} }),
		func(w http.ResponseWriter, r *http.Request) {
			text, err := io.ReadAll(r.Body)
			read <- err
			if err != nil { // like a handler that knows of no limit
				w.Header().Set("Content-Length", "9")
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, "bad body\n")
				return
			}
			_, _ = w.Write(text)
		},
	)
	fits, large := strings.Repeat("x", 1000), strings.Repeat("x", 1001)
	for name, body := range map[string]io.Reader{"length": strings.NewReader(fits), "chunked": chunked(fits)} {
		if got := r.ask(t, http.MethodPost, r.url+"/reorder", body, "x-api-key", "k"); got.code != http.StatusOK || got.body != fits {
			t.Errorf("%s, at the limit: %d %.40s", name, got.code, got.body)
		}
		if err := <-read; err != nil {
			t.Errorf("%s, at the limit: %v", name, err)
		}
	}
	const want = `{"detail":"Request body too large"}`
	if got := r.ask(t, http.MethodPost, r.url+"/reorder", strings.NewReader(large)); got.code != http.StatusRequestEntityTooLarge ||
		got.body != want {
		t.Errorf("length over the limit, without a key: %d %s", got.code, got.body)
	}
	if len(read) > 0 {
		t.Error("the API saw a body whose length is over the limit")
	}
	got := r.ask(t, http.MethodPost, r.url+"/reorder", chunked(large), "x-api-key", "k")
	if got.code != http.StatusRequestEntityTooLarge || got.body != want || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("chunked: %d %s %v", got.code, got.body, got.header)
	}
	err := <-read
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); !tooLarge {
		t.Errorf("the API read %v", err)
	}
	if got := r.ask(t, http.MethodPost, r.url+"/reorder", strings.NewReader("ok"), "x-api-key", "k"); got.body != "ok" {
		t.Errorf("afterwards: %d %s", got.code, got.body)
	}
}

// TestHeaderFlood: headers over the limit are refused before anybody sees them.
func TestHeaderFlood(t *testing.T) {
	r := start(t, onFreePorts(func(c *settings.Config) { c.Limits.HeaderBytes = 8 << 10 }), hello)
	if got := r.get(t, r.url+"/", "X-Flood", strings.Repeat("x", 7<<10)); got.code != http.StatusOK {
		t.Errorf("under the limit: %d", got.code)
	}
	if got := r.get(t, r.url+"/", "X-Flood", strings.Repeat("x", 100<<10)); got.code != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("over the limit: %d", got.code)
	}
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(testkit.Patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func say(t *testing.T, conn io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

// TestSlowloris: a connection that does not come to the point is closed.
func TestSlowloris(t *testing.T) {
	r := start(t, onFreePorts(func(c *settings.Config) {
		c.Timeouts.ReadHeader, c.Timeouts.ReadBody, c.Timeouts.Idle = 200*time.Millisecond, 200*time.Millisecond, 200*time.Millisecond
		c.Keys = []settings.Key{{Key: "k"}}
	}), func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			http.Error(w, "cannot read", http.StatusBadRequest)
		}
	})
	const slow = "POST /reorder HTTP/1.1\r\nHost: x\r\nX-Api-Key: k\r\n"
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"half a header", "GET / HTTP/1.1\r\nX-Slow: ", ""},
		{"half a body", slow + "Content-Length: 100\r\n\r\nhalf", "HTTP/1.1 408 "},
		{"half a chunked body", slow + "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", "HTTP/1.1 408 "},
		{"half a body without a key", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", "HTTP/1.1 401 "},
		{"nothing more", "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, r.Addr())
			say(t, conn, c.text)
			got, err := io.ReadAll(conn) // until the server closes it
			if err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
				t.Errorf("not closed: %v", err)
			}
			if !strings.HasPrefix(string(got), c.want) || c.want == "" && len(got) > 0 {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestDeadlineSparesAnswers: the time for reading a body does not end an answer, in whatever way the body came to its
// end. The answers below take many times as long.
func TestDeadlineSparesAnswers(t *testing.T) {
	const readBody = 40 * time.Millisecond
	cases := []struct {
		name string
		eat  func(w http.ResponseWriter, r *http.Request)
	}{
		{"read to its end", func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }},
		{"closed unread", func(_ http.ResponseWriter, r *http.Request) { _ = r.Body.Close() }},
		{"skipped by a flush", func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush() }},
		{"skipped by a Flusher", func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() }},
		{"skipped by a long write", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat(" ", 10_000)) }},
		{"read in part", func(w http.ResponseWriter, r *http.Request) {
			_, _ = r.Body.Read(make([]byte, 3))
			_ = http.NewResponseController(w).Flush()
		}},
	}
	for _, c := range cases {
		for name, body := range map[string]io.Reader{"length": strings.NewReader("some text"), "chunked": chunked("some text")} {
			t.Run(c.name+", "+name, func(t *testing.T) {
				t.Parallel()
				r := start(t, onFreePorts(func(c *settings.Config) { c.Timeouts.ReadBody = readBody }), func(w http.ResponseWriter, r *http.Request) {
					c.eat(w, r)
					tokens := time.NewTicker(readBody / 2)
					defer tokens.Stop()
					for range 10 {
						select {
						case <-r.Context().Done():
							t.Errorf("the answer was ended: %v", context.Cause(r.Context()))
							return
						case <-tokens.C:
							_, _ = io.WriteString(w, "token ")
							_ = http.NewResponseController(w).Flush()
						}
					}
				})
				got := r.ask(t, http.MethodPost, r.url+"/v1/completions", body)
				if strings.Count(got.body, "token ") != 10 {
					t.Errorf("got %q", got.body)
				}
			})
		}
	}
}

// TestKeepAlive: one connection serves request after request, also after a body was left unread.
func TestKeepAlive(t *testing.T) {
	r := start(t, onFreePorts(), func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RemoteAddr) })
	conn := dial(t, r.Addr())
	in := bufio.NewReader(conn)
	for range 3 {
		say(t, conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody")
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || string(text) != conn.LocalAddr().String() {
			t.Errorf("%q, %v", text, err)
		}
	}
}
