package elastic

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/elastic/go-elasticsearch/v8"
	"go.opentelemetry.io/otel/trace"

	"github.com/ragpilot/ragpilot/retriever/internal/dbspan"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// Index is one index of an Elasticsearch server, or the one behind an alias. It is safe for concurrent use; its searches
// share connections.
type Index struct {
	opts     Options
	client   *elasticsearch.TypedClient
	idle     func() // closes idle connections; nil if the client is not ours
	tracer   trace.Tracer
	concrete bool // opts.Index is an index that is being filled, not an alias
	closed   *atomic.Bool
	vectors  *atomic.Bool // the field of vectors was seen, see checkVectors
}

var _ store.Searcher = (*Index)(nil)

// Open returns the index. It does not wait for the server, nor for the server's index: the first call finds out. Errors
// name the field of opts that cannot be.
func Open(opts Options) (*Index, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("elastic: %w", err)
	}
	x := &Index{opts: opts, client: opts.Client, closed: new(atomic.Bool), vectors: new(atomic.Bool)}
	x.tracer = opts.Tracer.Tracer("github.com/ragpilot/ragpilot/retriever/elastic")
	if x.client == nil {
		if x.client, x.idle, err = opts.connect(); err != nil {
			return nil, fmt.Errorf("elastic: Options.Addresses = %q: %w", opts.Addresses, err)
		}
	}
	return x, nil
}

// Close ends the connections that are not in use, unless they are those of Options.Client; later calls fail. A second Close
// does nothing.
func (x *Index) Close() error {
	if !x.closed.Swap(true) && x.idle != nil {
		x.idle()
	}
	return nil
}

// Name returns Options.Index; of the Index that Rebuild fills, the name of the new index.
func (x *Index) Name() string { return x.opts.Index }

// Client returns the connection, for what only the server can do. It is not to be used after Close.
func (x *Index) Client() *elasticsearch.TypedClient { return x.client }

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

// call runs f under a span and says in its error what was being done.
func (x *Index) call(ctx context.Context, op string, f func(context.Context) error) error {
	ctx, span := dbspan.Call{System: "elasticsearch", Operation: op, Collection: x.opts.Index}.Start(ctx, x.tracer)
	defer span.End()
	err := x.alive(ctx)
	if err == nil {
		err = f(ctx)
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("elastic: %s %q: %w", op, x.opts.Index, withCause(ctx, err))
	dbspan.Fail(span, err)
	return err
}

func (x *Index) alive(ctx context.Context) error {
	if x.closed.Load() {
		return store.ErrClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// perform is a request of the typed client.
type perform func(context.Context) (*http.Response, error)

// once sends a request and reads its answer into out; nil: the answer is not read. What the server calls a bad request is
// bad.
func (x *Index) once(ctx context.Context, send perform, bad error, out any) error {
	ctx, cancel := x.bounded(ctx)
	defer cancel()
	return withCause(ctx, exchange(ctx, send, bad, out))
}

func exchange(ctx context.Context, send perform, bad error, out any) (err error) {
	res, err := send(ctx)
	if err != nil {
		return unreachable(err)
	}
	defer func() {
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxErrorBytes)) // so that the connection can be used again
		_ = res.Body.Close()
	}()
	if res.StatusCode >= http.StatusMultipleChoices {
		return answered(res, bad)
	}
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(res.Body).Decode(out); err != nil {
		return unreachable(fmt.Errorf("read the answer: %w", err)) // it ends too soon: the server, or a proxy, was killed
	}
	return nil
}
