package h1_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/h1"
)

// other fails the test if a request is passed on to it.
type other struct{ t *testing.T }

func (o other) RoundTrip(r *http.Request) (*http.Response, error) {
	o.t.Errorf("%s %s was passed on", r.Method, r.URL)
	return nil, errors.New("passed on")
}

// client returns a client over a Transport, and the number of connections that it opened.
func client(t *testing.T, change func(*h1.Transport)) (*http.Client, *atomic.Int32) {
	t.Helper()
	var dialled atomic.Int32
	tr := &h1.Transport{
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			dialled.Add(1)
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
		Other: other{t},
	}
	if change != nil {
		change(tr)
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, &dialled
}

// answer is what came back.
type answer struct {
	status  int
	trailer http.Header
}

func post(t *testing.T, c *http.Client, url, body string) (answer, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return answer{}, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Trailer}, string(text), err
}

// server answers each connection by hand.
func server(t *testing.T, serve func(c net.Conn, r *bufio.Reader, nth int)) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	t.Cleanup(func() { l.Close() })
	wg.Go(func() {
		for nth := 0; ; nth++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				serve(c, bufio.NewReader(c), nth)
			})
		}
	})
	return "http://" + l.Addr().String()
}

// request reads a whole request.
func request(r *bufio.Reader) (string, error) {
	req, err := http.ReadRequest(r)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(req.Body)
	return string(body), err
}

func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not so: ", what)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
