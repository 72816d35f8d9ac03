package qdrant_test

import (
	"net"
	"strconv"
	"testing"

	api "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc"

	"github.com/ragpilot/ragpilot/internal/testkit"
)

// dial returns a client of its own that is closed after the test.
func dial(t testing.TB, addr string, opts ...grpc.DialOption) *api.Client {
	t.Helper()
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	opts = append(opts, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	return testkit.Opened[*api.Client](t)(api.NewClient(&api.Config{
		Host: host, Port: port, PoolSize: 1, SkipCompatibilityCheck: true, GrpcOptions: opts,
	}))
}
