package h1_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/h1"
)

// Bodies and answers of all forms arrive whole, over one connection.
func TestForms(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/empty":
			w.WriteHeader(http.StatusNoContent)
		case "/chunked":
			for _, b := range body {
				_, _ = w.Write([]byte{b})
				w.(http.Flusher).Flush()
			}
		case "/trailer":
			w.Header().Set("Trailer", "X-Sum")
			_, _ = w.Write(body)
			w.Header().Set("X-Sum", fmt.Sprint(len(body)))
		default:
			fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL.RequestURI(), r.Header.Get("X-One"), body)
		}
	}))
	defer s.Close()
	c, dialled := client(t, nil)
	long := strings.Repeat("0123456789abcdef", h1.MaxBody/16)
	for range 3 {
		if _, got, err := post(t, c, s.URL+"/a?b=c", "hello"); err != nil || got != "POST /a?b=c  hello" {
			t.Fatal(got, err)
		}
		if _, got, err := post(t, c, s.URL+"/a", long); err != nil || got != "POST /a  "+long {
			t.Fatal(len(got), err)
		}
		if resp, got, err := post(t, c, s.URL+"/empty", "x"); err != nil || got != "" || resp.status != http.StatusNoContent {
			t.Fatal(got, err)
		}
		if _, got, err := post(t, c, s.URL+"/chunked", "in pieces"); err != nil || got != "in pieces" {
			t.Fatal(got, err)
		}
		if resp, got, err := post(t, c, s.URL+"/trailer", "xyz"); err != nil || got != "xyz" || resp.trailer.Get("X-Sum") != "3" {
			t.Fatal(got, err, resp.trailer)
		}
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodHead, s.URL+"/h", nil)
		resp, err := c.Do(req)
		if err != nil || resp.ContentLength != int64(len("HEAD /h  ")) {
			t.Fatal(resp, err)
		}
		resp.Body.Close()
	}
	if n := dialled.Load(); n != 1 {
		t.Errorf("%d connections for requests that follow one another, want 1", n)
	}
}

// What this transport does not take is passed on untouched.
func TestPassesOn(t *testing.T) {
	cases := map[string]func(*http.Request){
		"TLS":               func(r *http.Request) { r.URL.Scheme = "https" },
		"upgrade":           func(r *http.Request) { r.Header.Set("Upgrade", "websocket") },
		"expectation":       func(r *http.Request) { r.Header.Set("Expect", "100-continue") },
		"unknown length":    func(r *http.Request) { r.ContentLength = -1 },
		"not in memory":     func(r *http.Request) { r.GetBody = nil },
		"too long":          func(r *http.Request) { r.ContentLength = h1.MaxBody + 1 },
		"trailers":          func(r *http.Request) { r.Trailer = http.Header{"X": nil} },
		"transfer encoding": func(r *http.Request) { r.TransferEncoding = []string{"chunked"} },
		"proxy":             func(r *http.Request) { r.Header.Set("X-Proxy", "1") },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			passed := errors.New("passed on")
			tr := &h1.Transport{
				Other: roundTripper(func(*http.Request) (*http.Response, error) { return nil, passed }),
				Proxy: func(r *http.Request) (*url.URL, error) {
					if r.Header.Get("X-Proxy") != "" {
						return &url.URL{Scheme: "http", Host: "127.0.0.1:2"}, nil
					}
					return nil, nil //nolint:nilnil // as http.Transport's
				},
			}
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:1/", nil)
			req.Body, req.ContentLength = io.NopCloser(strings.NewReader("body")), 4
			req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("body")), nil }
			change(req)
			resp, err := tr.RoundTrip(req)
			if resp != nil {
				resp.Body.Close()
			}
			if !errors.Is(err, passed) {
				t.Errorf("got %v, want that it is passed on", err)
			}
		})
	}
}

// An answer that comes before the request has been read is passed on, not the error of writing.
func TestEarlyAnswer(t *testing.T) {
	address := server(t, func(c net.Conn, _ *bufio.Reader, _ int) {
		fmt.Fprint(c, "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbig")
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, c)
	})
	c, _ := client(t, nil)
	resp, text, err := post(t, c, address, strings.Repeat("x", 200_000))
	if err != nil || resp.status != http.StatusRequestEntityTooLarge || text != "big" {
		t.Error(resp, text, err)
	}
}

// The end of the context ends a request in any of its states, and the error is the context's cause.
func TestCancel(t *testing.T) {
	arrived, gone := make(chan struct{}, 4), make(chan error, 4)
	address := server(t, func(c net.Conn, r *bufio.Reader, _ int) {
		body, err := request(r)
		if err != nil {
			return
		}
		if body == "stream" {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfirst")
		}
		arrived <- struct{}{}
		_, err = r.ReadByte()
		gone <- err
	})
	cause := errors.New("the client left")
	for _, body := range []string{"wait", "stream"} {
		t.Run(body, func(t *testing.T) {
			tr := &h1.Transport{Dial: (&net.Dialer{}).DialContext, Other: other{t}}
			defer tr.CloseIdleConnections()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			req, _ := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body))
			if body == "wait" {
				go func() { <-arrived; cancel(cause) }()
			}
			resp, err := tr.RoundTrip(req)
			if body == "stream" {
				if err != nil {
					t.Fatal(err)
				}
				<-arrived
				cancel(cause)
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			} else if resp != nil {
				resp.Body.Close()
			}
			if !errors.Is(err, cause) {
				t.Errorf("error %v, want the cause", err)
			}
			if err := <-gone; err == nil {
				t.Error("the upstream was not told")
			}
		})
	}
}

// An upstream that does not begin to answer in time gives an error that says so.
func TestHeaderTimeout(t *testing.T) {
	address := server(t, func(_ net.Conn, r *bufio.Reader, _ int) {
		_, _ = request(r)
		_, _ = r.ReadByte()
	})
	c, _ := client(t, func(tr *h1.Transport) { tr.HeaderTimeout = 20 * time.Millisecond })
	_, _, err := post(t, c, address, "x")
	if network, ok := errors.AsType[net.Error](err); !ok || !network.Timeout() {
		t.Errorf("error %v, want a timeout", err)
	}
}

// The time for headers does not end an answer that has begun.
func TestSlowBody(t *testing.T) {
	address := server(t, func(c net.Conn, r *bufio.Reader, _ int) {
		_, _ = request(r)
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")
		time.Sleep(60 * time.Millisecond)
		fmt.Fprint(c, "k")
	})
	c, _ := client(t, func(tr *h1.Transport) { tr.HeaderTimeout = 30 * time.Millisecond })
	if _, text, err := post(t, c, address, "x"); err != nil || text != "ok" {
		t.Error(text, err)
	}
}

// Answers that no client should trust: each gives an error or the plain answer, and the connection is not used again.
func TestBadAnswers(t *testing.T) {
	for name, sent := range map[string]string{
		"no answer":        "",
		"nonsense":         "nonsense\r\n\r\n",
		"broken headers":   "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
		"cut in headers":   "HTTP/1.1 200 OK\r\nContent-Le",
		"cut in the body":  "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
		"cut in a chunk":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
		"two lengths":      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"interim for ever": strings.Repeat("HTTP/1.1 103 Early\r\n\r\n", 50),
	} {
		t.Run(name, func(t *testing.T) {
			address := server(t, func(c net.Conn, r *bufio.Reader, _ int) {
				_, _ = request(r)
				_, _ = io.WriteString(c, sent)
			})
			c, _ := client(t, nil)
			if resp, text, err := post(t, c, address, "x"); err == nil {
				t.Errorf("no error: %v %q", resp.status, text)
			}
		})
	}
	t.Run("more than the answer", func(t *testing.T) {
		address := server(t, func(c net.Conn, r *bufio.Reader, _ int) {
			_, _ = request(r)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
			_, _ = r.ReadByte()
		})
		c, dialled := client(t, nil)
		for range 3 {
			if _, text, err := post(t, c, address, "x"); err != nil || text != "ok" {
				t.Error(text, err)
			}
		}
		if n := dialled.Load(); n != 3 {
			t.Errorf("%d connections, want 3: none may be used again", n)
		}
	})
	t.Run("endless headers", func(t *testing.T) {
		address := server(t, func(c net.Conn, r *bufio.Reader, _ int) {
			_, _ = request(r)
			line := bytes.Repeat([]byte("X-A: "+strings.Repeat("b", 1000)+"\r\n"), 1000)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			for {
				if _, err := c.Write(line); err != nil {
					return
				}
			}
		})
		c, _ := client(t, nil)
		if _, _, err := post(t, c, address, "x"); err == nil {
			t.Error("no error")
		}
	})
}

// Interim answers are told, and do not take the answer's place.
func TestInterim(t *testing.T) {
	address := server(t, func(c net.Conn, r *bufio.Reader, _ int) {
		_, _ = request(r)
		_, _ = io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	})
	c, _ := client(t, nil)
	var hints, firsts int
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse:       func(code int, _ textproto.MIMEHeader) error { hints += code; return nil },
		GotFirstResponseByte: func() { firsts++ },
	})
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader("x"))
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || hints != 103 || firsts != 1 {
		t.Error(resp.Status, hints, firsts)
	}
}
