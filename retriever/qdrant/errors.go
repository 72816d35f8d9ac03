package qdrant

import (
	"errors"
	"fmt"

	"google.golang.org/grpc"

	"github.com/ragpilot/ragpilot/internal/storage/qdrantconn"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// errConnectionClosed is what a call gets whose connection Close has ended.
var errConnectionClosed = grpc.ErrClientConnClosing //nolint:staticcheck // its replacement is a code that says less

// errTooLarge: an answer is larger than the client takes, or a request than the server does.
var errTooLarge = errors.New("Options.MaxMessageBytes is too small")

// typed wraps an error of the client with what it stands for; nil stays nil. An argument that the server refused is bad.
func typed(err, bad error) error {
	if err == nil {
		return nil
	}
	kinds := qdrantconn.Errors{
		Unavailable: store.ErrUnavailable, Unauthorized: store.ErrUnauthorized, NotFound: store.ErrNoIndex, Invalid: bad, TooLarge: errTooLarge,
	}
	kind := kinds.Of(err)
	switch {
	case kind == nil:
		return err
	case errors.Is(kind, store.ErrNoIndex):
		return fmt.Errorf("%w (Create makes it): %w", kind, err)
	default:
		return fmt.Errorf("%w: %w", kind, err)
	}
}
