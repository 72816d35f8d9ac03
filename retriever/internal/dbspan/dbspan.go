// Package dbspan makes the spans of the adapters over databases, with the attributes that OpenTelemetry's conventions for
// databases name. Of an error they hold the kind alone: its text may quote a document, or what the server knows.
package dbspan

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/ragpilot/ragpilot/retriever/store"
)

// Call is what a span is about.
type Call struct {
	System     string // the database, such as "qdrant"
	Operation  string
	Collection string
}

// Start opens the span of a call. Questions and texts must not be among the attributes.
func (c Call) Start(ctx context.Context, tracer trace.Tracer, attrs ...attribute.KeyValue) (context.Context, trace.Span) {
	ctx, span := tracer.Start(ctx, c.Operation+" "+c.Collection, trace.WithSpanKind(trace.SpanKindClient))
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String("db.system.name", c.System),
			attribute.String("db.operation.name", c.Operation),
			attribute.String("db.collection.name", c.Collection))
		span.SetAttributes(attrs...)
	}
	return ctx, span
}

// Retry notes in the context's span that an attempt has failed and will be repeated.
func Retry(ctx context.Context, attempt int, err error) {
	span := trace.SpanFromContext(ctx)
	if span.IsRecording() {
		span.AddEvent("retry", trace.WithAttributes(attribute.Int("attempt", attempt), attribute.String("error.type", errorType(err))))
	}
}

// Fail marks a span as failed.
func Fail(span trace.Span, err error) {
	if span.IsRecording() {
		span.SetAttributes(attribute.String("error.type", errorType(err)))
		span.SetStatus(codes.Error, "") // the text of an error may quote a document
	}
}

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
