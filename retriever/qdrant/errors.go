package qdrant

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"

	"github.com/ragpilot/ragpilot/internal/base/qdrantconn"
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

// explain asks the server for the length of its vectors when it refused a request, and says so if ours have another one.
func (x *Index) explain(ctx context.Context, err error, length int) error {
	if length == 0 || !errors.Is(err, store.ErrBadQuery) && !errors.Is(err, store.ErrBadDocument) {
		return err
	}
	info, infoErr := x.client.GetCollectionInfo(ctx, x.opts.Collection)
	if infoErr != nil {
		return err // the first error says more
	}
	config := info.GetConfig().GetParams().GetVectorsConfig()
	params := config.GetParams()
	if x.opts.Vector != "" {
		params = config.GetParamsMap().GetMap()[x.opts.Vector]
	}
	switch {
	case params == nil:
		return fmt.Errorf("the collection has no dense vector named %q (Options.Vector): %w", x.opts.Vector, err)
	case params.GetSize() != uint64(length): //nolint:gosec // a length
		return fmt.Errorf("%w: %d from Options.Embedder, %d in the collection: %w", store.ErrDimension, length, params.GetSize(), err)
	}
	return err
}
