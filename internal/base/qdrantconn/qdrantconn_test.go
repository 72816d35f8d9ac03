package qdrantconn_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	api "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ragpilot/ragpilot/internal/base/qdrantconn"
)

func TestHostPort(t *testing.T) {
	for addr, want := range map[string]string{"localhost:6334": "localhost", "[::1]:6334": "[::1]", "10.0.0.1:6334": "10.0.0.1"} {
		host, port, err := qdrantconn.HostPort(addr)
		if err != nil || host != want || port != 6334 {
			t.Errorf("HostPort(%q) = %q, %d, %v", addr, host, port, err)
		}
	}
	for _, addr := range []string{"", "localhost", "localhost:", "localhost:x", "localhost:70000", "localhost:-1"} {
		if _, _, err := qdrantconn.HostPort(addr); err == nil {
			t.Errorf("HostPort(%q) is accepted", addr)
		}
	}
}

// Only a server that is unavailable is asked again, and not for ever.
func TestRetry(t *testing.T) {
	gone, bad := status.Error(codes.Unavailable, "gone"), status.Error(codes.InvalidArgument, "bad")
	for name, c := range map[string]struct {
		attempts int
		errs     []error
		want     error
		calls    int
	}{
		"at once":      {3, nil, nil, 1},
		"comes back":   {3, []error{gone, gone}, nil, 3},
		"stays away":   {3, []error{gone, gone, gone, gone}, gone, 3},
		"bad":          {3, []error{bad}, bad, 1},
		"no repeating": {1, []error{gone}, gone, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			calls, again := 0, 0
			_, err := qdrantconn.Retry(t.Context(), c.attempts, func(int, error) { again++ }, func(context.Context) (int, error) {
				calls++
				if calls <= len(c.errs) {
					return 0, c.errs[calls-1]
				}
				return calls, nil
			})
			if !errors.Is(err, c.want) || calls != c.calls || again != calls-1 {
				t.Errorf("%s: %v after %d calls, %d noted; want %v after %d", name, err, calls, again, c.want, c.calls)
			}
		})
	}
}

// A context that ends while the server is awaited ends the waiting.
func TestRetryEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := qdrantconn.Retry(ctx, 1000, func(int, error) { cancel() }, func(context.Context) (int, error) {
		return 0, status.Error(codes.Unavailable, "gone")
	})
	if !qdrantconn.Unavailable(err) {
		t.Errorf("%v, want the server's error", err)
	}
}

// What the server answers, and which of an adapter's errors that is.
func TestErrors(t *testing.T) {
	e := qdrantconn.Errors{
		Unavailable: errors.New("unavailable"), Unauthorized: errors.New("unauthorized"), NotFound: errors.New("not found"),
		Invalid: errors.New("invalid"), TooLarge: errors.New("too large"),
	}
	for _, c := range []struct {
		err, want error
	}{
		{status.Error(codes.Unavailable, "gone"), e.Unavailable},
		{status.Error(codes.ResourceExhausted, "busy"), e.Unavailable},
		{&api.QdrantResourceExhaustedError{Reason: "busy", RetryAfterS: 7}, e.Unavailable},
		{status.Error(codes.ResourceExhausted, "grpc: received message larger than max (9 vs. 8)"), e.TooLarge},
		{status.Error(codes.Unauthenticated, "no key"), e.Unauthorized},
		{status.Error(codes.PermissionDenied, "read only"), e.Unauthorized},
		{status.Error(codes.NotFound, "no collection"), e.NotFound},
		{status.Error(codes.InvalidArgument, "bad"), e.Invalid},
		{status.Error(codes.DeadlineExceeded, "late"), context.DeadlineExceeded},
		{status.Error(codes.Canceled, "left"), context.Canceled},
		{status.Error(codes.Internal, "broken"), nil},
		{errors.New("another error"), nil},
	} {
		if got := e.Of(fmt.Errorf("query: %w", c.err)); !errors.Is(got, c.want) {
			t.Errorf("%v stands for %v, want %v", c.err, got, c.want)
		}
	}
}
