package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

const patienceOfWrites = 400 * time.Millisecond

func shortWrites(c *settings.Config) { c.Timeouts.Write = patienceOfWrites }

// bothProtocols runs a test over HTTP/1.1 and over HTTP/2.
func bothProtocols(t *testing.T, api http.HandlerFunc, test func(t *testing.T, r *running)) {
	t.Run("HTTP 1", func(t *testing.T) { test(t, start(t, onFreePorts(shortWrites), api)) })
	t.Run("HTTP 2", func(t *testing.T) {
		a := newAuthority(t)
		cert, key := a.issue("server")
		r := start(t, onFreePorts(shortWrites, func(c *settings.Config) { c.TLS = settings.TLS{Cert: cert, Key: key} }), api)
		test(t, r.over(a.client("")))
	})
}

// TestStalledReader: an answer that its client does not read is given up, so that the engine behind it can stop. The
// connection is a real one, whose buffers take the first megabytes.
func TestStalledReader(t *testing.T) {
	t.Parallel()
	for name, piece := range map[string]int{"small pieces": 8 << 10, "one piece": 64 << 20} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 2)
			bothProtocols(t, func(w http.ResponseWriter, _ *http.Request) {
				text := make([]byte, piece)
				for {
					if _, err := w.Write(text); err != nil {
						ended <- err
						_ = http.NewResponseController(w).Flush() // is not counted again
						panic(http.ErrAbortHandler)               // as a proxy does
					}
					if err := http.NewResponseController(w).Flush(); err != nil {
						ended <- err
						panic(http.ErrAbortHandler)
					}
				}
			}, func(t *testing.T, r *running) {
				began := time.Now()
				answer := r.stream(t, "/v1/completions") // is not read
				select {
				case err := <-ended:
					if time.Since(began) < patienceOfWrites {
						t.Errorf("given up after %v: %v", time.Since(began), err)
					}
					if strings.HasPrefix(r.url, "http:") && !errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("error %v", err)
					}
				case <-time.After(testkit.Patience):
					t.Fatal("it goes on")
				}
				if n, err := io.Copy(io.Discard, answer); err == nil {
					t.Errorf("a client takes %d bytes of a cut answer for all of it", n)
				}
				testkit.Eventually(t, "the end of the request", func() bool {
					return strings.Contains(r.get(t, r.admin+"/metrics").body, "ragpilot_http_requests_in_flight 0")
				})
				if strings.HasPrefix(r.url, "http:") {
					testkit.Contains(t, "metrics", r.get(t, r.admin+"/metrics").body, "ragpilot_http_answers_stalled_total 1")
				}
			})
		})
	}
}

// TestStalledAtTheEnd: what net/http still holds when the handler has returned is given up, too. In HTTP/2 it is known how
// much that is: what the client's window of 4 MiB does not take.
func TestStalledAtTheEnd(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	cert, key := a.issue("server")
	returned := make(chan struct{})
	r := start(
		t,
		onFreePorts(shortWrites, func(c *settings.Config) { c.TLS = settings.TLS{Cert: cert, Key: key} }),
		func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, 4<<20))
			_, _ = w.Write(make([]byte, 1000))
			close(returned)
		},
	).over(a.client(""))
	answer := r.stream(t, "/v1/completions")
	<-returned
	<-time.After(2 * patienceOfWrites)
	if n, err := io.Copy(io.Discard, answer); err == nil {
		t.Errorf("all %d bytes came, though nobody took them for so long", n)
	}
}

// TestSilenceIsNoStall: an engine that says nothing for many times the testkit.Patience of writes ends no answer, whether or not
// what it said before was flushed.
func TestSilenceIsNoStall(t *testing.T) {
	t.Parallel()
	const silence = patienceOfWrites * 3 / 2
	bothProtocols(t, func(w http.ResponseWriter, r *http.Request) {
		pause := func() {
			select {
			case <-time.After(silence):
			case <-r.Context().Done():
				t.Errorf("the answer was ended: %v", r.Context().Err())
			}
		}
		_, _ = io.Copy(io.Discard, r.Body)
		pause() // before the first byte
		_, _ = io.WriteString(w, "first ")
		_ = http.NewResponseController(w).Flush()
		pause()
		_, _ = io.WriteString(w, "second ")
		pause() // with bytes in net/http's buffer
		_, _ = io.WriteString(w, "third")
		if strings.HasSuffix(r.URL.Path, "/late") {
			pause()
		}
	}, func(t *testing.T, r *running) {
		var all sync.WaitGroup
		for _, path := range []string{"/v1/completions", "/v1/late"} {
			all.Go(func() {
				if got := r.ask(t, http.MethodPost, r.url+path, strings.NewReader("{}")); got.code != http.StatusOK ||
					got.body != "first second third" {
					t.Errorf("%s: %d %q", path, got.code, got.body)
				}
			})
		}
		all.Wait()
	})
}

// TestSlowReader: a client that goes on reading gets all of an answer that was written in one go, however long it takes.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	const size = 24 << 20              // more than the buffers of the system
	const longWrites = 4 * time.Second // that the machine does not let the client read for so long is another matter
	r := start(t, onFreePorts(func(c *settings.Config) { c.Timeouts.Write = longWrites }), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(size))
		_, _ = w.Write(make([]byte, size))
	})
	conn := dial(t, r.Addr())
	_ = conn.(*net.TCPConn).SetReadBuffer(64 << 10)
	say(t, conn, "GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	began, n := time.Now(), int64(0)
	for part := make([]byte, 1<<20); ; {
		got, err := io.ReadFull(res.Body, part)
		n += int64(got)
		if err != nil {
			break
		}
		<-time.After(longWrites / 16)
	}
	if n != size || time.Since(began) < longWrites {
		t.Errorf("%d of %d bytes after %v", n, size, time.Since(began))
	}
}

// TestIdleIsNoStall: the deadline of one answer does not touch the next request of its connection.
func TestIdleIsNoStall(t *testing.T) {
	t.Parallel()
	r := start(t, onFreePorts(shortWrites), hello)
	conn := dial(t, r.Addr())
	in := bufio.NewReader(conn)
	for range 2 {
		say(t, conn, "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
		if line, err := in.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatalf("%q, %v", line, err)
		}
		_, _ = in.ReadString('\n')
		say(t, conn, "body")
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || string(text) != "hello" {
			t.Errorf("%q, %v", text, err)
		}
		<-time.After(2 * patienceOfWrites)
	}
}

// BenchmarkToken is what one piece of a stream costs in the server, from the handler's write to the client's read.
func BenchmarkToken(b *testing.B) {
	piece := []byte("data: {\"choices\":[{\"delta\":{\"content\":\" token\"}}]}\n\n")
	api := func(w http.ResponseWriter, r *http.Request) {
		conn := http.NewResponseController(w)
		for r.Context().Err() == nil {
			if _, err := w.Write(piece); err != nil || conn.Flush() != nil {
				return
			}
		}
	}
	read := func(b *testing.B, r *running) {
		req := testkit.Request(b, http.MethodGet, r.url+"/v1/models", http.NoBody)
		res, err := r.client.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		defer res.Body.Close()
		got := make([]byte, len(piece))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := io.ReadFull(res.Body, got); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("HTTP 1", func(b *testing.B) { read(b, start(b, onFreePorts(), api)) })
	b.Run("HTTP 2", func(b *testing.B) {
		a := newAuthority(b)
		cert, key := a.issue("server")
		r := start(b, onFreePorts(func(c *settings.Config) { c.TLS = settings.TLS{Cert: cert, Key: key} }), api)
		read(b, r.over(a.client("")))
	})
}
