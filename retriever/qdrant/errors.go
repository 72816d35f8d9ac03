package qdrant

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	api "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ragpilot/ragpilot/retriever/store"
)

// errConnectionClosed is what a call gets whose connection Close has ended.
var errConnectionClosed = grpc.ErrClientConnClosing //nolint:staticcheck // its replacement is a code that says less

// kinds are the errors that a code of the server stands for, whatever was asked.
var kinds = map[codes.Code]error{
	codes.NotFound:          store.ErrNoIndex,
	codes.Unauthenticated:   store.ErrUnauthorized,
	codes.PermissionDenied:  store.ErrUnauthorized,
	codes.Unavailable:       store.ErrUnavailable,
	codes.ResourceExhausted: store.ErrUnavailable,
	codes.DeadlineExceeded:  context.DeadlineExceeded,
	codes.Canceled:          context.Canceled,
}

// typed wraps an error of the client with what it stands for. An argument that the server refused is bad.
func typed(err, bad error) error {
	if _, limited := errors.AsType[*api.QdrantResourceExhaustedError](err); limited {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	if s.Code() == codes.ResourceExhausted && strings.Contains(s.Message(), "larger than max") {
		return fmt.Errorf("Options.MaxMessageBytes is too small: %w", err) // gRPC's own check, not the server's
	}
	if s.Code() == codes.InvalidArgument {
		return fmt.Errorf("%w: %w", bad, err)
	}
	if kind, known := kinds[s.Code()]; known {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}

// withCause adds why the context ended, which the client does not say. The server knows the deadline too, and its word
// of it can come before the context's own timer ran.
func withCause(ctx context.Context, err error) error {
	if end, ok := ctx.Deadline(); ok && errors.Is(err, context.DeadlineExceeded) && !time.Now().Before(end) {
		<-ctx.Done()
	}
	if ctx.Err() == nil || errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), err)
}
