package qdrant

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	api "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// connection says where a server is and how to talk to it.
type connection struct {
	Addr            string      // host:port of the gRPC services
	APIKey          string      // sent with each request; empty: none
	TLS             *tls.Config // nil: no encryption
	MaxMessageBytes int         // of one answer
}

// check returns an error that names the field of Options: if there is a client to share and an address as well, or if
// the address has no port.
func (c connection) check(client *api.Client) error {
	switch {
	case client != nil && (c.Addr != "" || c.APIKey != "" || c.TLS != nil):
		return errors.New("Options.Client is set, and Addr, APIKey or TLS as well: the client has its own")
	case client != nil || c.Addr == "":
		return nil
	}
	if _, _, err := hostPort(c.Addr); err != nil {
		return fmt.Errorf("Options.Addr = %q, want host:port: %w", c.Addr, err)
	}
	return nil
}

// connect returns the client to share, or one of its own, which the caller closes.
func (c connection) connect(client *api.Client) (_ *api.Client, own bool, err error) {
	if client != nil {
		return client, false, nil
	}
	c.Addr = cmp.Or(c.Addr, DefaultAddr)
	if client, err = c.dial(); err != nil {
		return nil, false, fmt.Errorf("Options.Addr = %q: %w", c.Addr, err)
	}
	return client, true, nil
}

// dial returns a client that shares one connection between all its callers. It does not wait for the server. The error is
// about Addr or TLS.
func (c connection) dial() (*api.Client, error) {
	host, port, err := hostPort(c.Addr)
	if err != nil {
		return nil, err
	}
	return api.NewClient(&api.Config{
		Host: host, Port: port, APIKey: c.APIKey, UseTLS: c.TLS != nil, TLSConfig: c.TLS,
		PoolSize:               1,    // HTTP/2 carries all requests over one connection
		SkipCompatibilityCheck: true, // it would wait for the server here, without a context
		GrpcOptions:            c.options(),
	})
}

// options are those of the connection.
func (c connection) options() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(c.MaxMessageBytes)),
		grpc.WithDisableRetry(), // we count attempts ourselves
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: connectTimeout}),
	}
}

// reconnect bounds the time between two attempts to connect, jitter included, by a second: gRPC's own upper bound of two
// minutes would keep the client away from a server that has long been back. Calls do not wait for it, they fail at once.
var reconnect = backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 800 * time.Millisecond}

// connectTimeout bounds one attempt to connect, for example to a machine that is starting and drops packets.
const connectTimeout = 5 * time.Second

// hostPort splits an address into what the client takes.
func hostPort(addr string) (string, int, error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, err
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]" // the client joins host and port without brackets
	}
	return host, int(port), nil
}
