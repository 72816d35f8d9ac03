package proxy_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// wire is a connection to a proxy on which the test writes bytes of its own.
type wire struct {
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, front *httptest.Server) wire {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return wire{conn, bufio.NewReader(conn)}
}

// reply is an answer that was read to its end.
type reply struct {
	code           int
	text           string
	chunked, close bool
}

func (w wire) read(t *testing.T) reply {
	t.Helper()
	resp, err := http.ReadResponse(w.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("the answer broke off: %v", err)
	}
	return reply{resp.StatusCode, string(text), len(resp.TransferEncoding) > 0, resp.Close}
}

// closed reports whether the server has closed the connection.
func (w wire) closed() bool {
	_, err := w.in.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

// wirePaths are one path of each kind: planned, with an ID added, passing.
var wirePaths = []string{chatPath, "/v1/completions", "/v1/embeddings"}

// streamed is an answer of unknown length in pieces.
func streamed(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	for i := range 3 {
		fmt.Fprintf(w, "data: %d\n\n", i)
		w.(http.Flusher).Flush()
	}
}

const streamedText = "data: 0\n\ndata: 1\n\ndata: 2\n\n"

// A client that asks whether to send its body is asked for it once, and the engine is not asked to ask.
func TestExpectContinue(t *testing.T) {
	e := newEngine(t)
	front := httptest.NewServer(newProxy(t, e, nil))
	defer front.Close()
	body := chat("s", "q")
	for _, path := range wirePaths {
		t.Run(path, func(t *testing.T) {
			w := dial(t, front)
			fmt.Fprintf(w, "POST %s HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", path, len(body))
			if line, err := w.in.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
				t.Fatalf("%q, %v", line, err)
			}
			if line, err := w.in.ReadString('\n'); err != nil || line != "\r\n" {
				t.Fatalf("%q, %v", line, err)
			}
			fmt.Fprint(w, body)
			if got := w.read(t); got.code != http.StatusOK || !strings.Contains(got.text, `"usage"`) {
				t.Errorf("%+v", got)
			}
			if got := e.lastHead(); got.Get("Expect") != "" {
				t.Errorf("forwarded: Expect: %s", got.Get("Expect"))
			}
			fmt.Fprintf(w, "GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
			if got := w.read(t); got.code != http.StatusOK {
				t.Errorf("the next request on the connection: %+v", got)
			}
		})
	}
}

// wholeAndStreamed runs a test for each kind of path, with an answer in one piece and with a stream.
func wholeAndStreamed(t *testing.T, test func(t *testing.T, e *engine, front *httptest.Server, path string, stream bool)) {
	t.Helper()
	e := newEngine(t)
	front := httptest.NewServer(newProxy(t, e, nil))
	defer front.Close()
	for _, path := range wirePaths {
		for name, answer := range map[string]http.HandlerFunc{"whole": nil, "stream": streamed} {
			t.Run(path+" "+name, func(t *testing.T) {
				e.says(answer)
				test(t, e, front, path, answer != nil)
			})
		}
	}
}

// A client of HTTP/1.0 gets no chunks, and the end of its answer is the connection's, also of a stream.
func TestHTTP10(t *testing.T) {
	body := chat("s", "q")
	wholeAndStreamed(t, func(t *testing.T, _ *engine, front *httptest.Server, path string, stream bool) {
		w := dial(t, front)
		fmt.Fprintf(w, "POST %s HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
		got := w.read(t)
		if got.code != http.StatusOK || got.chunked || stream && got.text != streamedText || !w.closed() {
			t.Errorf("%+v", got)
		}
		if stream {
			return
		}
		w = dial(t, front)
		for range 2 {
			fmt.Fprintf(w, "POST %s HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
			if got := w.read(t); got.code != http.StatusOK || !strings.Contains(got.text, `"usage"`) {
				t.Errorf("kept alive: %+v", got)
			}
		}
	})
}

// "Connection: close" ends the client's connection after its answer; it is nothing to the engine.
func TestConnectionClose(t *testing.T) {
	body := chat("s", "q")
	wholeAndStreamed(t, func(t *testing.T, e *engine, front *httptest.Server, path string, stream bool) {
		w := dial(t, front)
		const head = "POST %s HTTP/1.1\r\nHost: x\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nContent-Length: %d\r\n\r\n%s"
		fmt.Fprintf(w, head, path, len(body), body)
		got := w.read(t)
		if got.code != http.StatusOK || !got.close || stream && got.text != streamedText || !w.closed() {
			t.Errorf("%+v", got)
		}
		if h := e.lastHead(); h.Get("Connection") != "" || h.Get("X-Hop") != "" {
			t.Errorf("forwarded: %v", h)
		}
	})
}

// A body in chunks arrives whole, its trailers do no harm, and the connection serves the next request.
func TestChunksWithTrailers(t *testing.T) {
	e := newEngine(t)
	front := httptest.NewServer(newProxy(t, e, nil))
	defer front.Close()
	body := chat("s", "q")
	half := len(body) / 2
	for _, path := range wirePaths {
		t.Run(path, func(t *testing.T) {
			w := dial(t, front)
			for range 2 {
				fmt.Fprintf(w, "POST %s HTTP/1.1\r\nHost: x\r\nTrailer: X-Sum\r\nTransfer-Encoding: "+
					"chunked\r\n\r\n%x\r\n%s\r\n%x;ext=1\r\n%s\r\n0\r\nX-Sum: 1\r\nX-Other: 2\r\n\r\n",
					path, half, body[:half], len(body)-half, body[half:])
				if got := w.read(t); got.code != http.StatusOK || !strings.Contains(got.text, `"usage"`) {
					t.Errorf("%+v", got)
				}
				if got := contents(t, e.last()); len(got) != 2 || got[1] != "q" {
					t.Errorf("the engine got %s", e.last())
				}
			}
		})
	}
}
