package testkit

import (
	"context"
	"net"
	"sync"
)

// Network is an in-memory network: tests under testing/synctest that use it wait on nothing outside their bubble. It is the
// listener of a server and dials to it.
type Network struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewNetwork returns a network on which nothing is connected.
func NewNetwork() *Network {
	return &Network{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept implements [net.Listener].
func (n *Network) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (n *Network) Close() error {
	n.once.Do(func() { close(n.closed) })
	return nil
}

// Addr implements [net.Listener].
func (*Network) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

// Dial connects to the listener, whatever the address.
func (n *Network) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
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
