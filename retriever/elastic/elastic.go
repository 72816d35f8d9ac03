package elastic

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/ragpilot/ragpilot/retriever/internal/remote"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// Index is one index of an Elasticsearch server, or the one behind an alias. It is safe for concurrent use; its searches
// share connections.
type Index struct {
	opts     Options
	client   Client
	idle     func() // closes idle connections; nil if the client is not ours
	calls    *remote.Calls
	concrete bool         // opts.Index is an index that is being filled, not an alias
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
	x := &Index{opts: opts, client: opts.Client, vectors: new(atomic.Bool), calls: &remote.Calls{
		Package: "elastic", System: "elasticsearch", Index: opts.Index, Timeout: opts.Timeout, Attempts: opts.Attempts,
		Tracer: remote.NewTracer(opts.Tracer, "elastic"),
	}}
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
	if x.calls.Close() && x.idle != nil {
		x.idle()
	}
	return nil
}

// Name returns Options.Index; of the Index that Rebuild fills, the name of the new index.
func (x *Index) Name() string { return x.opts.Index }

// Client returns the connection, for what only the server can do: Options.Client, or the one that Open made. It is not to be
// used after Close.
func (x *Index) Client() Client { return x.client }

// Retriever returns a langchaingo retriever that sends q with the question as its text. A q that makes no sense is
// reported by the first use.
func (x *Index) Retriever(q store.Query) store.Retriever { return store.NewRetriever(x, q) }

// once sends a request and reads its answer into out; nil: the answer is not read. What the server calls a bad request is
// bad.
func (x *Index) once(ctx context.Context, c call, bad error, out any) error {
	ctx, cancel := x.calls.Bounded(ctx)
	defer cancel()
	return remote.WithCause(ctx, c.exchange(ctx, x.client, bad, out))
}

// read sends a request that changes nothing, again and again while the server is unavailable.
func (x *Index) read(ctx context.Context, c call, bad error, out any) error {
	ctx, cancel := x.calls.Bounded(ctx)
	defer cancel()
	err := x.calls.Retry(ctx, remote.Unavailable, func() error { return c.exchange(ctx, x.client, bad, out) })
	return remote.WithCause(ctx, err)
}
