package qdrant

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/ragpilot/ragpilot/retriever/store"
)

// TestServerComesBack: however long the server was away, the connection stands a second after it is back. The clock is
// that of synctest.
func TestServerComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pipe, server := bufconn.Listen(1<<10), grpc.NewServer()
		served := make(chan error, 1)
		go func() { served <- server.Serve(pipe) }()
		var away atomic.Bool
		options := append(connection{MaxMessageBytes: 1 << 20}.options(),
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				if away.Load() {
					return nil, errors.New("connection refused")
				}
				return pipe.DialContext(ctx)
			}))
		for _, outage := range []time.Duration{time.Second, 5 * time.Second, 10 * time.Minute} {
			away.Store(true)
			conn, err := grpc.NewClient("passthrough:///fake", options...)
			if err != nil {
				t.Fatal(err)
			}
			conn.Connect()
			time.Sleep(outage)
			if state := conn.GetState(); state != connectivity.TransientFailure && state != connectivity.Connecting {
				t.Errorf("%v without a server: the connection is %v", outage, state)
			}
			away.Store(false)
			time.Sleep(time.Second)
			synctest.Wait()
			if state := conn.GetState(); state != connectivity.Ready {
				t.Errorf("a second after an outage of %v the connection is %v", outage, state)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

func TestHostPort(t *testing.T) {
	for addr, want := range map[string]string{"localhost:6334": "localhost", "[::1]:6334": "[::1]", "10.0.0.1:6334": "10.0.0.1"} {
		host, port, err := hostPort(addr)
		if err != nil || host != want || port != 6334 {
			t.Errorf("HostPort(%q) = %q, %d, %v", addr, host, port, err)
		}
	}
	for _, addr := range []string{"", "localhost", "localhost:", "localhost:x", "localhost:70000", "localhost:-1"} {
		if _, _, err := hostPort(addr); err == nil {
			t.Errorf("HostPort(%q) is accepted", addr)
		}
	}
}

// What the server answers, and what that stands for.
func TestKinds(t *testing.T) {
	bad := errors.New("invalid")
	for _, c := range []struct {
		err, want error
	}{
		{status.Error(codes.Unavailable, "gone"), store.ErrUnavailable},
		{status.Error(codes.ResourceExhausted, "busy"), store.ErrUnavailable},
		{&api.QdrantResourceExhaustedError{Reason: "busy", RetryAfterS: 7}, store.ErrUnavailable},
		{status.Error(codes.ResourceExhausted, "grpc: received message larger than max (9 vs. 8)"), errTooLarge},
		{status.Error(codes.Unauthenticated, "no key"), store.ErrUnauthorized},
		{status.Error(codes.PermissionDenied, "read only"), store.ErrUnauthorized},
		{status.Error(codes.NotFound, "no collection"), store.ErrNoIndex},
		{status.Error(codes.InvalidArgument, "bad"), bad},
		{status.Error(codes.DeadlineExceeded, "late"), context.DeadlineExceeded},
		{status.Error(codes.Canceled, "left"), context.Canceled},
		{status.Error(codes.Internal, "broken"), nil},
		{errors.New("another error"), nil},
	} {
		if got := kindOf(fmt.Errorf("query: %w", c.err), bad); !errors.Is(got, c.want) {
			t.Errorf("%v stands for %v, want %v", c.err, got, c.want)
		}
	}
}
