//go:build linux

package faulttest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSlowUpstream: an engine that does not begin to answer is given up in time; one that stalls later is the client's
// to give up, and then it hears of it.
func TestSlowUpstream(t *testing.T) {
	faults(t)
	e := newScripted(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := http.NewResponseController(w)
		switch r.Header.Get("X-Fault") {
		case "headers":
		case "stream":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: 1\n\ndata: 2\n\n")
			_ = out.Flush() // or the client has left
		case "length":
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"id":`)
			_ = out.Flush()
		default:
			fmt.Fprint(w, "{}")
			return
		}
		<-r.Context().Done()
	}))
	const header = 700 * time.Millisecond
	hasty := serve(t, e.URL, fmt.Sprintf("timeouts: {upstream_header: %v}", header))
	s := serve(t, e.URL, "")
	hasty.ledger = s.ledger
	before, hastyBefore := s.atRest(t, e), hasty.atRest(t, e)

	t.Run("no header", func(t *testing.T) {
		for _, path := range []string{chatPath, plainPath, passPath} {
			began := time.Now()
			q := wholeChat(1)
			q.path, q.header = path, []string{"X-Fault", "headers"}
			r := hasty.send(t, q)
			if took := time.Since(began); r.code != http.StatusGatewayTimeout || r.err != nil || took < header {
				t.Errorf("after %v: %v", took, r)
			}
		}
	})
	// Of an answer whose length is known, a part may be held back: nobody waits for parts of it.
	for _, c := range []struct{ name, fault, want string }{
		{"stalled stream", "stream", "data: 1\n\ndata: 2\n\n"},
		{"stalled answer", "length", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			q := streamChat(1)
			q.header = []string{"X-Fault", c.fault}
			came := ""
			if c.want == "" {
				time.AfterFunc(time.Second, cancel)
			}
			r := s.sendWatched(ctx, q, func(part []byte) {
				if came += string(part); c.want != "" && strings.HasPrefix(came, c.want) {
					cancel()
				}
			})
			if !errors.Is(r.err, context.Canceled) || !strings.HasPrefix(string(r.body), c.want) {
				t.Errorf("got %v", r)
			}
		})
	}
	t.Run("given up before the headers", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			eventually(t, "the request upstream", func() bool { return e.inFlight() > 0 })
			cancel()
		}()
		q := wholeChat(1)
		q.header = []string{"X-Fault", "headers"}
		if r := s.sendWatched(ctx, q, nil); r.code != 0 {
			t.Errorf("got %v", r)
		}
	})
	for _, a := range e.arrivals(t) { // waits until none runs: each has seen that its client has gone
		if a.header.Get("X-Fault") != "" && !a.left {
			t.Errorf("%s (%s) was not cancelled", a.ID, a.header.Get("X-Fault"))
		}
	}
	s.recovered(t, e, before)
	hasty.recovered(t, e, hastyBefore)
	s.ledger.accountPaths(t, e.arrivals(t), chatPath)
}

// accountPaths is account for requests to one path; of the others, bodies may change on their way.
func (l *ledger) accountPaths(t *testing.T, arrivals []*arrival, path string) {
	t.Helper()
	part := new(ledger)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.all {
		if r.path == path {
			part.add(r)
		}
	}
	var there []*arrival
	for _, a := range arrivals {
		if a.Path == path {
			there = append(there, a)
		}
	}
	part.account(t, there, true)
}

// TestUpstreamTakesNoConnection: an engine whose machine swallows connections is given up in time.
func TestUpstreamTakesNoConnection(t *testing.T) {
	faults(t)
	addr := fullListener(t)
	s := serve(t, "http://"+addr, "timeouts: {upstream_connect: 300ms}")
	before, _ := s.vitals(t)
	for range 3 {
		if r := s.send(t, wholeChat(1)); r.code != http.StatusBadGateway || r.err != nil {
			t.Errorf("got %v", r)
		}
	}
	s.client.CloseIdleConnections()
	eventually(t, "rest", func() bool {
		now, _ := s.vitals(t)
		return now.files <= before.files && now.goroutines <= before.goroutines
	})
}

// fullListener listens, accepts nothing, and has no room for more connections.
func fullListener(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	for range 10 {
		conn, err := (&net.Dialer{Timeout: 300 * time.Millisecond}).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			return addr
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	t.Skip("this system takes connections without room for them")
	return ""
}
