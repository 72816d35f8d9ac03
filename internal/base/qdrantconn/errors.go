package qdrantconn

import (
	"context"
	"errors"
	"strings"

	api "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Errors are an adapter's own, for what errors of the client stand for. nil: the adapter has none for that.
type Errors struct {
	Unavailable  error // the server cannot be reached, is overloaded, limits the rate or is shutting down
	Unauthorized error // the server refused the key, or does not let it do this
	NotFound     error // there is no such collection
	Invalid      error // the server refused an argument
	TooLarge     error // a message has more bytes than one of the two ends takes
}

// Of returns what an error of the client stands for: one of e, or that of a context that has ended. Nil: none of these.
func (e Errors) Of(err error) error {
	if _, limited := errors.AsType[*api.QdrantResourceExhaustedError](err); limited {
		return e.Unavailable // the client puts it in place of the error that has the code
	}
	switch s := status.Convert(err); s.Code() {
	case codes.Unavailable:
		return e.Unavailable
	case codes.ResourceExhausted:
		if strings.Contains(s.Message(), "larger than max") {
			return e.TooLarge // gRPC's own check; later is not better
		}
		return e.Unavailable
	case codes.Unauthenticated, codes.PermissionDenied:
		return e.Unauthorized
	case codes.NotFound:
		return e.NotFound
	case codes.InvalidArgument:
		return e.Invalid
	case codes.DeadlineExceeded:
		return context.DeadlineExceeded
	case codes.Canceled:
		return context.Canceled
	}
	return nil
}

// CreateCollection makes a collection. It is no error if another program made it at the same time, which the server reports, or
// calls the request invalid.
func CreateCollection(ctx context.Context, client *api.Client, request *api.CreateCollection) error {
	err := client.CreateCollection(ctx, request)
	if code := status.Code(err); code == codes.AlreadyExists || code == codes.InvalidArgument {
		if exists, other := client.CollectionExists(ctx, request.GetCollectionName()); other == nil && exists {
			return nil
		}
	}
	return err
}
