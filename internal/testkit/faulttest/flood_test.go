//go:build linux

package faulttest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/lab/upstream"
)

// TestHeaderFlood: headers that are too many or too large are refused, and those without an end too.
func TestHeaderFlood(t *testing.T) {
	faults(t)
	e := newEngine(t, upstream.Options{})
	s := serve(t, e.URL, "timeouts: {read_header: 2s}")
	before := s.atRest(t, e)
	for name, c := range map[string]struct {
		text string
		want string
	}{
		"one too large":      {"GET /v1/models HTTP/1.1\r\nHost: x\r\nX-Flood: " + strings.Repeat("x", 100<<10) + "\r\n\r\n", "HTTP/1.1 431 "},
		"too many":           {"GET /v1/models HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X-Flood: x\r\n", 10_000) + "\r\n", "HTTP/1.1 431 "},
		"too many names":     {"GET /v1/models HTTP/1.1\r\nHost: x\r\n" + numbered(10_000, "X-%d: %d\r\n") + "\r\n", "HTTP/1.1 431 "},
		"a path too long":    {"GET /v1/" + strings.Repeat("x", 100<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 431 "},
		"no end":             {"GET /v1/models HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X-Flood: x\r\n", 200_000), "HTTP/1.1 431 "},
		"a line without end": {"GET /v1/models HTTP/1.1\r\nHost: x\r\nX-Flood: " + strings.Repeat("x", 3*mib), "HTTP/1.1 431 "},
		"many, but not too": {
			"GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + strings.Repeat("X: x\r\n", 10_000) + "\r\n",
			"HTTP/1.1 200 ",
		},
		"two lengths":        {head(chatPath, "Content-Length: 1", "Content-Length: 2") + "xy", "HTTP/1.1 400 "},
		"length and chunks":  {head(passPath, "Content-Length: 1", chunked, "Connection: close") + "0\r\n\r\n", "HTTP/1.1 "},
		"a space too many":   {head(chatPath, "Transfer-Encoding : chunked") + "0\r\n\r\n", "HTTP/1.1 400 "},
		"no host":            {"GET /v1/models HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "},
		"no HTTP":            {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "HTTP/1.1 400 "},
		"HTTP 2, unasked":    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 "},
		"chunks of words":    {head(chatPath, chunked) + "many\r\n", "HTTP/1.1 400 "},
		"trailers, too many": {head(chatPath, chunked) + "0\r\n" + strings.Repeat("X-Flood: x\r\n", 200_000) + "\r\n", "HTTP/1.1 400 "},
	} {
		t.Run(name, func(t *testing.T) {
			if got := converse(t, s.addr, c.text); !strings.HasPrefix(got, c.want) {
				t.Errorf("got %.200q, want %q", got, c.want)
			}
		})
	}
	s.recovered(t, e, before)
	if peak := s.peakMiB(t); peak > 100 {
		t.Errorf("%d MiB of memory", peak)
	}
}

// converse writes a text and returns the beginning of what comes back.
func converse(t *testing.T, addr, text string) string {
	t.Helper()
	conn := dial(t, addr)
	var writer sync.WaitGroup
	writer.Go(func() { _, _ = io.WriteString(conn, text) }) // the server may not read it all
	start := make([]byte, 512)
	n, _ := io.ReadFull(conn, start)
	_ = conn.Close()
	writer.Wait()
	return string(start[:n])
}

// TestSlowloris: clients that send a byte now and then are answered 408, or closed, in the configured time, however many
// they are; others are served meanwhile.
func TestSlowloris(t *testing.T) {
	faults(t)
	const most = 2 * time.Second
	e := newEngine(t, upstream.Options{})
	s := serve(t, e.URL, fmt.Sprintf("timeouts: {read_header: %v, read_body: %v, idle: 3s}", most, most))
	before := s.atRest(t, e)
	var clients sync.WaitGroup
	for _, c := range []struct{ name, begin, drop, want string }{
		{"nothing", "", "", ""},
		{"the request line", "POST ", "x", "HTTP/1.1 400 "}, // what there is of it is no request
		{"a header", "POST " + chatPath + " HTTP/1.1\r\nHost: x\r\nX-Slow: ", "x", ""},
		{"headers", "POST " + chatPath + " HTTP/1.1\r\nHost: x\r\n", "A: b\r\n", ""},
		{"a body", head(chatPath, "Content-Length: 100000"), " ", "HTTP/1.1 408 "},
		{"a completion's body", head(plainPath, "Content-Length: 100000"), " ", "HTTP/1.1 408 "},
		{"a body that passes", head(passPath, "Content-Length: 100000"), " ", "HTTP/1.1 408 "},
		{"chunks", head(chatPath, chunked), "1\r\nx\r\n", "HTTP/1.1 408 "},
		{"chunks that pass", head(passPath, chunked), "1\r\nx\r\n", "HTTP/1.1 408 "},
		{"a body for the index", head("/reorder", "Content-Length: 100000"), " ", "HTTP/1.1 408 "},
		{"trailers", head(chatPath, chunked) + "0\r\n", "A: b\r\n", "HTTP/1.1 400 "},
		{"the next request", "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", "", "HTTP/1.1 200 "},
	} {
		for range 20 {
			clients.Go(func() {
				got, took := drip(t, s.addr, c.begin, c.drop)
				if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
					t.Errorf("%s: got %.100q, want %q", c.name, got, c.want)
				}
				if took > patience/2 {
					t.Errorf("%s: it took %v", c.name, took)
				}
			})
		}
	}
	for range 20 {
		s.alive(t)
	}
	clients.Wait()
	s.recovered(t, e, before)
	s.ledger.accountPaths(t, e.arrivals(t), chatPath)
}

// drip sends a beginning and then a drop now and then, until the server closes the connection.
func drip(t *testing.T, addr, begin, drop string) (got string, took time.Duration) {
	conn := dial(t, addr)
	began := time.Now()
	closed := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(closed)
		text, _ := io.ReadAll(conn) // reset or not: closed
		got = string(text)
	})
	_, _ = io.WriteString(conn, begin)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-closed:
			_ = conn.Close()
			return got, time.Since(began)
		case <-tick.C:
			_, _ = io.WriteString(conn, drop)
		}
	}
}

// TestIdleConnections: 2,000 connections on which nobody asks hinder nobody and are closed in time.
func TestIdleConnections(t *testing.T) {
	faults(t)
	const connections = 2000
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < 2*connections {
		t.Skipf("%d files may be open: too few", limit.Cur)
	}
	e := newEngine(t, upstream.Options{})
	s := serve(t, e.URL, "timeouts: {read_header: 6s, idle: 7s}")
	before := s.atRest(t, e)
	var open sync.WaitGroup
	conns := make([]net.Conn, connections)
	for first := range 50 {
		open.Go(func() {
			for i := first; i < connections; i += 50 {
				conns[i] = dial(t, s.addr)
				if i%2 == 0 {
					continue // never asks at all
				}
				fmt.Fprint(conns[i], "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
				res, err := http.ReadResponse(bufio.NewReader(conns[i]), nil)
				if err != nil {
					t.Error(err)
					continue
				}
				res.Body.Close()
			}
		})
	}
	open.Wait()
	if n := s.files(t) - before.files; n < connections/4 {
		t.Errorf("only %d connections are open", n) // the first may be closed again already
	}
	for range 10 {
		s.alive(t)
	}
	peak := s.peakMiB(t)
	for i, conn := range conns {
		if _, err := io.Copy(io.Discard, conn); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Errorf("connection %d was not closed", i)
			break
		}
		_ = conn.Close()
	}
	s.recovered(t, e, before)
	if peak > 150 {
		t.Errorf("%d MiB of memory", peak)
	}
	t.Logf("%d MiB of memory with %d connections", peak, connections)
}
