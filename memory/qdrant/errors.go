package qdrant

import (
	"errors"
	"fmt"

	"github.com/ragpilot/ragpilot/internal/base/qdrantconn"
	"github.com/ragpilot/ragpilot/memory"
)

// Causes that callers can distinguish with errors.Is. Those of package memory are the same for all backends.
var (
	// ErrUnavailable: the server cannot be reached, is overloaded or is shutting down. Later may be better.
	ErrUnavailable = memory.ErrUnavailable
	// ErrUnauthorized: the server refused the key, or does not let it do this.
	ErrUnauthorized = memory.ErrUnauthorized
	// ErrUnknownOutcome: the server did not say whether a change was stored, and could not be asked. Look before you
	// repeat it.
	ErrUnknownOutcome = memory.ErrUnknownOutcome
	// ErrNotErased: a change was stored. No reader finds what it replaced or removed, but that could not be deleted from the
	// server yet. The next change by any process does so.
	ErrNotErased = memory.ErrNotErased
	// ErrClosed: the backend was used after Close.
	ErrClosed = memory.ErrClosed
)

// errTooLarge: a message has more bytes than one of the two ends takes.
var errTooLarge = errors.New("a message is too large for Options.MaxMessageBytes, or for the server")

// kinds are the errors that an answer of the server stands for.
var kinds = qdrantconn.Errors{Unavailable: ErrUnavailable, Unauthorized: ErrUnauthorized, TooLarge: errTooLarge}

// typed wraps an error of the client with what it stands for.
func typed(op string, err error) error {
	if kind := kinds.Of(err); kind != nil && !errors.Is(err, kind) {
		return fmt.Errorf("%s: %w: %w", op, kind, err)
	}
	return fmt.Errorf("%s: %w", op, err)
}
