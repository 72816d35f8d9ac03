package qdrant

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	api "github.com/qdrant/go-client/qdrant"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/ragpilot/ragpilot/internal/storage/qdrantconn"
	"github.com/ragpilot/ragpilot/retriever/internal/dbspan"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// Index is one collection of a Qdrant server. It is safe for concurrent use; all its searches share one connection.
type Index struct {
	opts   Options
	client *api.Client
	owned  bool // the client is closed with the index
	tracer trace.Tracer
	filter *api.Condition // of Options.Filter; nil if there is none
	closed *atomic.Bool
}

var _ store.Searcher = (*Index)(nil)

// Open returns the index for a collection. It does not wait for the server, nor for the collection: the first call finds
// out. Errors name the field of opts that cannot be.
func Open(opts Options) (*Index, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("qdrant: %w", err)
	}
	x := &Index{opts: opts, client: opts.Client, closed: new(atomic.Bool)}
	x.tracer = opts.Tracer.Tracer("github.com/ragpilot/ragpilot/retriever/qdrant")
	if opts.Filter != nil {
		x.filter = api.NewFilterAsCondition(opts.Filter)
	}
	if x.client == nil {
		if x.client, err = dial(opts); err != nil {
			return nil, fmt.Errorf("qdrant: Options.Addr = %q: %w", opts.Addr, err)
		}
		x.owned = true
	}
	return x, nil
}

func dial(opts Options) (*api.Client, error) {
	return qdrantconn.Dial(qdrantconn.Config{Addr: opts.Addr, APIKey: opts.APIKey, TLS: opts.TLS, MaxMessageBytes: opts.MaxMessageBytes})
}

// Close ends the connection, unless it is that of Options.Client. Calls that are under way fail. A second Close does
// nothing.
func (x *Index) Close() error {
	if x.closed.Swap(true) || !x.owned {
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

// errTimeout is the cause of a context's end when Options.Timeout was the reason.
type errTimeout struct{ text string }

func (e errTimeout) Error() string { return e.text }

func (e errTimeout) Unwrap() []error {
	return []error{store.ErrUnavailable, context.DeadlineExceeded}
}

// bounded ends the context after Options.Timeout at the latest.
func (x *Index) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if x.opts.Timeout < 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, x.opts.Timeout,
		errTimeout{fmt.Sprintf("no answer within Options.Timeout = %v", x.opts.Timeout)})
}

// begin opens a span and bounds the context. The caller calls end with the result.
func (x *Index) begin(ctx context.Context, op string, attrs ...attribute.KeyValue) (context.Context, *call, error) {
	if x.closed.Load() {
		return ctx, nil, fmt.Errorf("qdrant: %s %q: %w", op, x.opts.Collection, store.ErrClosed)
	}
	if ctx.Err() != nil {
		return ctx, nil, fmt.Errorf("qdrant: %s %q: %w", op, x.opts.Collection, context.Cause(ctx))
	}
	ctx, cancel := x.bounded(ctx)
	ctx, span := dbspan.Call{System: "qdrant", Operation: op, Collection: x.opts.Collection}.Start(ctx, x.tracer, attrs...)
	return ctx, &call{index: x, op: op, span: span, cancel: cancel}, nil
}

// call is one use of the index, from begin to end.
type call struct {
	index  *Index
	op     string
	span   trace.Span
	cancel context.CancelFunc
}

// end closes the span and returns the error as callers see it.
func (c *call) end(ctx context.Context, err error) error {
	defer c.cancel()
	defer c.span.End()
	if err == nil {
		return nil
	}
	if c.index.closed.Load() && errors.Is(err, errConnectionClosed) {
		err = store.ErrClosed
	}
	err = fmt.Errorf("qdrant: %s %q: %w", c.op, c.index.opts.Collection, withCause(ctx, err))
	dbspan.Fail(c.span, err)
	return err
}
