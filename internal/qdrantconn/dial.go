package qdrantconn

import (
	"crypto/tls"
	"net"
	"strconv"
	"strings"

	api "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc"
)

// Config says where a server is and how to talk to it.
type Config struct {
	Addr            string      // host:port of the gRPC services
	APIKey          string      // sent with each request; empty: none
	TLS             *tls.Config // nil: no encryption
	MaxMessageBytes int         // of one answer
}

// Dial returns a client that shares one connection between all its callers. It does not wait for the server. The error is
// about Addr or TLS.
func Dial(c Config) (*api.Client, error) {
	host, port, err := HostPort(c.Addr)
	if err != nil {
		return nil, err
	}
	return api.NewClient(&api.Config{
		Host: host, Port: port, APIKey: c.APIKey, UseTLS: c.TLS != nil, TLSConfig: c.TLS,
		PoolSize:               1,    // HTTP/2 carries all requests over one connection
		SkipCompatibilityCheck: true, // it would wait for the server here, without a context
		GrpcOptions: []grpc.DialOption{
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(c.MaxMessageBytes)),
			grpc.WithDisableRetry(), // we count attempts ourselves
		},
	})
}

// HostPort splits an address into what the client takes.
func HostPort(addr string) (string, int, error) {
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
