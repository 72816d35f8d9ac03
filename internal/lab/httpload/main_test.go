package httpload_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/internal/lab/httpload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// network is an in-memory network: what waits on it waits on nothing outside a synctest bubble.
type network struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

func (n *network) Close() error {
	n.once.Do(func() { close(n.closed) })
	return nil
}

func (*network) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case n.conns <- server:
		return client, nil
	case <-n.closed:
		return nil, &net.OpError{Op: "dial", Err: net.ErrClosed}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serve starts a server in memory. The returned function ends it; it must run before a bubble ends.
func serve(t testing.TB, h http.HandlerFunc) (*httpload.Target, func()) {
	t.Helper()
	n := &network{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: h}
	go func() { _ = server.Serve(n) }()
	client := &http.Client{Transport: &http.Transport{DialContext: n.dial, MaxIdleConnsPerHost: 1000, DisableCompression: true}}
	target, err := httpload.NewTarget("http://memory", "chat/completions", "", client)
	if err != nil {
		t.Fatal(err)
	}
	return target, func() {
		target.Close()
		_ = server.Close()
	}
}

// fixed is the same body for all requests.
var fixed = httpload.Recorded{[]byte(`{}`)}
