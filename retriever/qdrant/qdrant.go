package qdrant

import (
	"context"
	"errors"
	"fmt"

	api "github.com/qdrant/go-client/qdrant"
	"go.opentelemetry.io/otel/attribute"

	"github.com/ragpilot/ragpilot/retriever/internal/remote"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// Index is one collection of a Qdrant server. It is safe for concurrent use; all its searches share one connection.
type Index struct {
	opts   Options
	client *api.Client
	owned  bool // the client is closed with the index
	calls  *remote.Calls
	filter *api.Condition // of Options.Filter; nil if there is none
}

var _ store.Searcher = (*Index)(nil)

// Open returns the index for a collection. It does not wait for the server, nor for the collection: the first call finds
// out. Errors name the field of opts that cannot be.
func Open(opts Options) (*Index, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("qdrant: %w", err)
	}
	x := &Index{opts: opts, calls: &remote.Calls{
		Package: "qdrant", System: "qdrant", Index: opts.Collection, Timeout: opts.Timeout, Attempts: opts.Attempts,
		Tracer: remote.NewTracer(opts.Tracer, "qdrant"),
	}}
	if opts.Filter != nil {
		x.filter = api.NewFilterAsCondition(opts.Filter)
	}
	if x.client, x.owned, err = opts.server().connect(opts.Client); err != nil {
		return nil, fmt.Errorf("qdrant: %w", err)
	}
	return x, nil
}

// Close ends the connection, unless it is that of Options.Client. Calls that are under way fail. A second Close does
// nothing.
func (x *Index) Close() error {
	if !x.calls.Close() || !x.owned {
		return nil
	}
	if err := x.client.Close(); err != nil {
		return fmt.Errorf("qdrant: close: %w", err)
	}
	return nil
}

// Retriever returns a langchaingo retriever that sends q with the question as its text. A q that makes no sense is
// reported by the first use.
func (x *Index) Retriever(q store.Query) store.Retriever { return store.NewRetriever(x, q) }

// call runs f under a span and with a deadline.
func (x *Index) call(ctx context.Context, op string, f func(context.Context) error, attrs ...attribute.KeyValue) error {
	return x.calls.Do(ctx, op, func(ctx context.Context) error {
		ctx, cancel := x.calls.Bounded(ctx)
		defer cancel()
		err := f(ctx)
		if err != nil && x.calls.Closed() && errors.Is(err, errConnectionClosed) {
			return store.ErrClosed
		}
		return remote.WithCause(ctx, err)
	}, attrs...)
}

// read sends a request with a method of the client, again while the server is unavailable. Only for what changes nothing on the
// server. An argument that the server refused is bad.
func read[Q, A any](ctx context.Context, x *Index, bad error, send func(context.Context, Q) (A, error), request Q) (out A, err error) {
	err = x.calls.Retry(ctx, unavailable, func() error {
		out, err = send(ctx, request)
		return typed(err, bad)
	})
	return out, err
}
