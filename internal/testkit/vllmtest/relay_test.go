//go:build unix

package vllmtest

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// relay stands between a server's events and a subscriber, so that their connection can be cut.
type relay struct {
	to     string // path of the server's socket
	listen net.Listener
	group  sync.WaitGroup

	mu    sync.Mutex
	shut  bool              // guarded by mu
	conns map[net.Conn]bool // guarded by mu
}

// newRelay returns a relay to an ipc endpoint. It ends with the test.
func newRelay(t *testing.T, endpoint string) *relay {
	t.Helper()
	path := strings.TrimPrefix(endpoint, "ipc://")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(filepath.Dir(path), "relay"))
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{to: path, listen: l, conns: map[net.Conn]bool{}}
	r.group.Go(r.run)
	t.Cleanup(func() {
		_ = l.Close()
		r.cut()
		r.group.Wait()
	})
	return r
}

func (r *relay) endpoint() string { return "ipc://" + r.listen.Addr().String() }

func (r *relay) run() {
	for {
		from, err := r.listen.Accept()
		if err != nil {
			return
		}
		to, err := new(net.Dialer).Dial("unix", r.to)
		if err != nil {
			_ = from.Close()
			continue
		}
		if !r.keep(from, to) {
			continue
		}
		r.group.Go(func() { r.copy(to, from) })
		r.group.Go(func() { r.copy(from, to) })
	}
}

// keep notes two ends of a connection, or closes them if the relay is cut.
func (r *relay) keep(ends ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range ends {
		if r.shut {
			_ = c.Close()
		} else {
			r.conns[c] = true
		}
	}
	return !r.shut
}

func (r *relay) copy(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range []net.Conn{to, from} {
		_ = c.Close()
		delete(r.conns, c)
	}
}

// cut closes all connections, and new ones at once.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shut = true
	for c := range r.conns {
		_ = c.Close()
	}
}

// mend lets connections through again.
func (r *relay) mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shut = false
}
