package h1_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/h1"
)

// A connection that the upstream closed while nobody used it is not used again, and the request is sent once.
func TestClosedConnection(t *testing.T) {
	var got atomic.Int32
	closed := make(chan struct{}, 1)
	address := server(t, func(c net.Conn, r *bufio.Reader, _ int) {
		if _, err := request(r); err != nil {
			return
		}
		got.Add(1)
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		c.Close()
		closed <- struct{}{}
	})
	c, _ := client(t, nil)
	for range 20 {
		if _, text, err := post(t, c, address, "x"); err != nil || text != "ok" {
			t.Fatal(text, err)
		}
		<-closed
	}
	if n := got.Load(); n != 20 {
		t.Errorf("%d requests arrived, want 20", n)
	}
}

// A POST is never sent a second time; a GET is, if its connection was an old one.
func TestBrokenConnection(t *testing.T) {
	var arrived atomic.Int32
	address := server(t, func(c net.Conn, r *bufio.Reader, nth int) {
		for n := 0; ; n++ {
			if _, err := request(r); err != nil {
				return
			}
			arrived.Add(1)
			if nth == 0 && n == 1 {
				return // the second request of the first connection gets no answer
			}
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	t.Run("POST", func(t *testing.T) {
		c, _ := client(t, nil)
		if _, _, err := post(t, c, address, "1"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := post(t, c, address, "2"); err == nil {
			t.Error("the broken connection was not told")
		}
		if n := arrived.Load(); n != 2 {
			t.Errorf("%d requests arrived, want 2", n)
		}
	})
	address = server(t, func(c net.Conn, r *bufio.Reader, nth int) {
		for n := 0; n < 1 || nth > 0; n++ {
			if _, err := request(r); err != nil {
				return
			}
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
		_, _ = request(r)
	})
	t.Run("GET", func(t *testing.T) {
		c, dialled := client(t, nil)
		for range 2 {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
			resp, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		if n := dialled.Load(); n != 2 {
			t.Errorf("%d connections, want 2", n)
		}
	})
}

// Connections that nobody uses are closed after a while, and when there are too many.
func TestIdle(t *testing.T) {
	var open atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(5 * time.Millisecond) }))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}
	s.Start()
	defer s.Close()
	c, _ := client(t, func(tr *h1.Transport) { tr.IdleTimeout, tr.MaxIdle = 200*time.Millisecond, 3 })
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() { _, _, _ = post(t, c, s.URL, "x") })
	}
	wg.Wait()
	wait(t, "at most 3 connections are kept", func() bool { return open.Load() <= 3 })
	wait(t, "none is kept for long", func() bool { return open.Load() == 0 })
}

// A connection that the upstream closes while nobody uses it does not stay open here.
func TestUpstreamCloses(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	var open atomic.Int32
	c, _ := client(t, func(tr *h1.Transport) {
		tr.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			nc, err := (&net.Dialer{}).DialContext(ctx, network, address)
			open.Add(1)
			return closing{nc.(*net.TCPConn), func() { open.Add(-1) }}, err
		}
	})
	if _, _, err := post(t, c, s.URL, "x"); err != nil {
		t.Fatal(err)
	}
	if n := open.Load(); n != 1 {
		t.Fatalf("%d connections open, want 1", n)
	}
	s.CloseClientConnections()
	wait(t, "it is closed", func() bool { return open.Load() == 0 })
}

// closing tells when a connection is closed.
type closing struct {
	*net.TCPConn

	closed func()
}

func (c closing) Close() error {
	err := c.TCPConn.Close()
	if err == nil {
		c.closed()
	}
	return err
}

// Many at once, some of them cancelled: each gets its own answer.
func TestParallel(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	}))
	defer s.Close()
	c, _ := client(t, nil)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				if i%7 == 0 {
					go cancel()
				}
				want := strings.Repeat(fmt.Sprintf("%d/%d ", g, i), 1+i*10)
				req, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader(want))
				if resp, err := c.Do(req); err == nil {
					got, err := io.ReadAll(resp.Body)
					resp.Body.Close()
					if err == nil && string(got) != want {
						t.Errorf("request %d/%d got another's answer", g, i)
					}
				} else if i%7 != 0 {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	wg.Wait()
}

// A request may ask for a new connection, where an old one may be closed at this moment.
func TestFreshConnection(t *testing.T) {
	var connections atomic.Int32
	address := server(t, func(c net.Conn, r *bufio.Reader, _ int) {
		connections.Add(1)
		for {
			if _, err := request(r); err != nil {
				return
			}
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	c, _ := client(t, nil)
	for i, ctx := range []context.Context{t.Context(), t.Context(), h1.WithFresh(t.Context())} {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if n, want := connections.Load(), int32(1+i/2); n != want {
			t.Errorf("request %d: %d connections, want %d", i, n, want)
		}
	}
}
