// Package remote is what the retrievers over servers share: calls with a name, a deadline, repeats and a span; the checks of
// options; and what documents are sent.
//
// Spans have the attributes that OpenTelemetry's conventions for databases name. Of an error they hold the kind alone: its text
// may quote a document, or what the server knows.
package remote

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/ragpilot/ragpilot/internal/base/pause"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// Calls makes the calls to one index of a server. It is safe for concurrent use.
type Calls struct {
	Package  string        // what errors begin with
	System   string        // the database's name in spans
	Index    string        // or collection
	Timeout  time.Duration // see Bounded
	Attempts int           // see Retry
	Tracer   trace.Tracer

	closed atomic.Bool
}

// NewTracer returns the tracer of a package; no provider: it makes no spans.
func NewTracer(provider trace.TracerProvider, name string) trace.Tracer {
	if provider == nil {
		provider = noop.NewTracerProvider()
	}
	return provider.Tracer("github.com/ragpilot/ragpilot/retriever/" + name)
}

// For returns calls to another index of the same server.
func (c *Calls) For(index string) *Calls {
	return &Calls{Package: c.Package, System: c.System, Index: index, Timeout: c.Timeout, Attempts: c.Attempts, Tracer: c.Tracer}
}

// Close makes later calls fail and reports whether it is the first Close.
func (c *Calls) Close() bool { return !c.closed.Swap(true) }

// Closed reports whether Close was called.
func (c *Calls) Closed() bool { return c.closed.Load() }

// Alive returns store.ErrClosed after Close, and the cause if the context has ended.
func (c *Calls) Alive(ctx context.Context) error {
	if c.Closed() {
		return store.ErrClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Do runs f under a span, and says in its error what was being done. Questions and texts must not be among the attributes.
func (c *Calls) Do(ctx context.Context, op string, f func(context.Context) error, attrs ...attribute.KeyValue) error {
	ctx, span := c.Tracer.Start(ctx, op+" "+c.Index, trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	span.SetAttributes(attribute.String("db.system.name", c.System), attribute.String("db.operation.name", op),
		attribute.String("db.collection.name", c.Index))
	span.SetAttributes(attrs...)
	err := c.Alive(ctx)
	if err == nil {
		err = f(ctx)
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %s %q: %w", c.Package, op, c.Index, WithCause(ctx, err))
	span.SetAttributes(attribute.String("error.type", errorType(err)))
	span.SetStatus(codes.Error, "")
	return err
}

// timeout is the cause of a context's end when Options.Timeout was the reason.
type timeout time.Duration

func (t timeout) Error() string {
	return fmt.Sprintf("no answer within Options.Timeout = %v", time.Duration(t))
}

// Unwrap lets errors.Is find what a timeout stands for.
func (timeout) Unwrap() []error { return []error{store.ErrUnavailable, context.DeadlineExceeded} }

// Bounded ends the context after Timeout at the latest; a Timeout below 0 leaves it as it is.
func (c *Calls) Bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.Timeout < 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, c.Timeout, timeout(c.Timeout))
}

// WithCause adds why the context ended, which clients do not say. A server knows the deadline too, and its answer about that can
// come before the context's own timer ran.
func WithCause(ctx context.Context, err error) error {
	if end, ok := ctx.Deadline(); ok && errors.Is(err, context.DeadlineExceeded) && !time.Now().Before(end) {
		<-ctx.Done()
	}
	if ctx.Err() == nil || errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), err)
}

// Retry calls f until repeat is false for its error, Attempts times at most. Between two attempts it waits for half to all of a
// time that doubles. The repeats are noted in the context's span.
func (c *Calls) Retry(ctx context.Context, repeat func(error) bool, f func() error) error {
	var pauses pause.Retries
	for attempt := 1; ; attempt++ {
		err := f()
		if err == nil || !repeat(err) || attempt >= c.Attempts || ctx.Err() != nil {
			return err
		}
		trace.SpanFromContext(ctx).AddEvent("retry", trace.WithAttributes(
			attribute.Int("attempt", attempt), attribute.String("error.type", errorType(err))))
		if !pauses.Wait(ctx) {
			return err
		}
	}
}

// Unavailable reports whether a later attempt may succeed.
func Unavailable(err error) bool { return errors.Is(err, store.ErrUnavailable) }

// errorType is the low-cardinality name of an error.
func errorType(err error) string {
	for _, t := range []struct {
		err  error
		name string
	}{
		{context.Canceled, "canceled"},
		{context.DeadlineExceeded, "timeout"},
		{store.ErrUnavailable, "unavailable"},
		{store.ErrUnauthorized, "unauthorized"},
		{store.ErrNoIndex, "no_index"},
		{store.ErrBadQuery, "bad_query"},
		{store.ErrBadDocument, "bad_document"},
		{store.ErrClosed, "closed"},
	} {
		if errors.Is(err, t.err) {
			return t.name
		}
	}
	return "other"
}
