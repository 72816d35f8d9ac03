package qdrant

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	api "github.com/qdrant/go-client/qdrant"

	"github.com/ragpilot/ragpilot/internal/base/qdrantconn"
	"github.com/ragpilot/ragpilot/memory"
)

// Backend is a [memory.Backend] on a server. It is safe for concurrent use and starts no goroutines but those of its
// connection.
type Backend struct {
	opts    Options
	client  *api.Client
	owned   bool // the client is closed with the backend
	closed  atomic.Bool
	writing chan struct{} // holds one token while no transaction of this process runs

	mu       sync.Mutex
	last     *head           // guarded by mu; the head read last
	finished string          // guarded by mu; the commit that is known to be finished
	made     map[string]bool // guarded by mu; collections that are known to exist
}

var _ memory.Backend = (*Backend)(nil)

// Open connects and makes what is missing on the server. Errors name the field of opts that cannot be, or wrap one of this
// package's.
func Open(ctx context.Context, opts Options) (*Backend, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("qdrant: %w", err)
	}
	b := &Backend{opts: opts, writing: make(chan struct{}, 1), made: map[string]bool{}}
	b.writing <- struct{}{}
	if b.client, b.owned, err = opts.server().Connect(opts.Client); err != nil {
		return nil, fmt.Errorf("qdrant: %w", err)
	}
	if err := b.create(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("qdrant: open %q: %w", opts.Collection, err), b.Close())
	}
	return b, nil
}

// Close ends the connection, unless it is that of Options.Client. Calls that are under way fail. A second Close does nothing.
func (b *Backend) Close() error {
	if b.closed.Swap(true) || !b.owned {
		return nil
	}
	if err := b.client.Close(); err != nil {
		return fmt.Errorf("qdrant: close: %w", err)
	}
	return nil
}

// call sends one request with a method of the client, again while the server is unavailable. Every request of this package can be
// repeated: points are written under names that are used once, and the head only changes if it is the expected one.
func call[Q, A any](ctx context.Context, b *Backend, op string, send func(context.Context, Q) (A, error), request Q) (out A, err error) {
	switch {
	case b.closed.Load():
		return out, fmt.Errorf("qdrant: %s: %w", op, ErrClosed)
	case ctx.Err() != nil:
		return out, fmt.Errorf("qdrant: %s: %w", op, context.Cause(ctx))
	}
	out, err = qdrantconn.Retry(ctx, b.opts.Attempts, nil, func(ctx context.Context) (A, error) {
		if b.opts.Timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, b.opts.Timeout)
			defer cancel()
		}
		return send(ctx, request)
	})
	if err == nil {
		return out, nil
	}
	return out, fmt.Errorf("qdrant: %w", typed(op, err))
}

// done is call for a request whose answer says nothing.
func done[Q, A any](ctx context.Context, b *Backend, op string, send func(context.Context, Q) (A, error), request Q) error {
	_, err := call(ctx, b, op, send, request)
	return err
}

// vectors returns the name of the collection of memories whose vectors have that length.
func (b *Backend) vectors(dimensions int) string {
	return b.opts.Collection + "-" + strconv.Itoa(dimensions)
}

// collections returns the names of all collections that a head speaks of.
func (b *Backend) collections(h *head) []string {
	names := append(make([]string, 0, 1+len(h.dimensions)), b.opts.Collection)
	for _, d := range h.dimensions {
		names = append(names, b.vectors(d))
	}
	return names
}
