package qdrant

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Causes that callers may want to tell apart, by errors.Is.
var (
	// ErrUnavailable: the server cannot be reached, is overloaded or is shutting down. Later may be better.
	ErrUnavailable = errors.New("server is unavailable")
	// ErrUnauthorized: the server refused the key, or does not let it do this.
	ErrUnauthorized = errors.New("server refused the key")
	// ErrUnknownOutcome: the server did not say whether a change was stored, and could not be asked. Look before you
	// repeat it.
	ErrUnknownOutcome = errors.New("whether the change was stored is not known")
	// ErrNotErased: a change was stored, and what it replaced or removed is found by nobody, but could not be deleted from
	// the server yet. The next change of anybody does that.
	ErrNotErased = errors.New("the change is stored, but what it removed is not deleted from the server yet")
	// ErrClosed: the backend was used after Close.
	ErrClosed = errors.New("closed")
)

// kinds are the errors that a code of the server stands for.
var kinds = map[codes.Code]error{
	codes.Unauthenticated:   ErrUnauthorized,
	codes.PermissionDenied:  ErrUnauthorized,
	codes.Unavailable:       ErrUnavailable,
	codes.ResourceExhausted: ErrUnavailable,
	codes.DeadlineExceeded:  context.DeadlineExceeded,
	codes.Canceled:          context.Canceled,
}

// typed wraps an error of the client with what it stands for.
func typed(op string, err error) error {
	if kind, known := kinds[status.Code(err)]; known && !errors.Is(err, kind) {
		return fmt.Errorf("%s: %w: %w", op, kind, err)
	}
	return fmt.Errorf("%s: %w", op, err)
}
