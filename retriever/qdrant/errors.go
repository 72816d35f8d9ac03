package qdrant

import (
	"context"
	"errors"
	"fmt"
	"strings"

	api "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ragpilot/ragpilot/retriever/store"
)

// errConnectionClosed is what a call gets whose connection Close has ended.
var errConnectionClosed = grpc.ErrClientConnClosing //nolint:staticcheck // its replacement is a code that says less

// errTooLarge: an answer is larger than the client takes, or a request than the server does.
var errTooLarge = errors.New("Options.MaxMessageBytes is too small")

// unavailable reports whether asking again may help.
func unavailable(err error) bool { return status.Code(err) == codes.Unavailable }

// typed wraps an error of the client with what it stands for; nil stays nil. An argument that the server refused is bad.
func typed(err, bad error) error {
	if err == nil {
		return nil
	}
	kind := kindOf(err, bad)
	switch {
	case kind == nil:
		return err
	case errors.Is(kind, store.ErrNoIndex):
		return fmt.Errorf("%w (Create makes it): %w", kind, err)
	default:
		return fmt.Errorf("%w: %w", kind, err)
	}
}

// kindOf returns what an error of the client stands for: one of package store, bad for an argument that the server refused, or that of a
// context that has ended. Nil: none of these.
func kindOf(err, bad error) error {
	if _, limited := errors.AsType[*api.QdrantResourceExhaustedError](err); limited {
		return store.ErrUnavailable // the client puts it in place of the error that has the code
	}
	switch s := status.Convert(err); s.Code() {
	case codes.Unavailable:
		return store.ErrUnavailable
	case codes.ResourceExhausted:
		if strings.Contains(s.Message(), "larger than max") {
			return errTooLarge // gRPC's own check; later is not better
		}
		return store.ErrUnavailable
	case codes.Unauthenticated, codes.PermissionDenied:
		return store.ErrUnauthorized
	case codes.NotFound:
		return store.ErrNoIndex
	case codes.InvalidArgument:
		return bad
	case codes.DeadlineExceeded:
		return context.DeadlineExceeded
	case codes.Canceled:
		return context.Canceled
	}
	return nil
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
