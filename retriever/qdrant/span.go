package qdrant

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/ragpilot/ragpilot/retriever/store"
)

type spanAttr = attribute.KeyValue

// startSpan opens a span with the attributes that OpenTelemetry's conventions for databases name. Questions and texts are
// not among them.
func (x *Index) startSpan(ctx context.Context, op string, attrs []spanAttr) (context.Context, trace.Span) {
	ctx, span := x.tracer.Start(ctx, op+" "+x.opts.Collection, trace.WithSpanKind(trace.SpanKindClient))
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String("db.system.name", "qdrant"),
			attribute.String("db.operation.name", op),
			attribute.String("db.collection.name", x.opts.Collection))
		span.SetAttributes(attrs...)
	}
	return ctx, span
}

func eventRetry(ctx context.Context, attempt int, err error) {
	span := trace.SpanFromContext(ctx)
	if span.IsRecording() {
		span.AddEvent("retry", trace.WithAttributes(attribute.Int("attempt", attempt), attribute.String("error", err.Error())))
	}
}

func failSpan(span trace.Span, err error) {
	if span.IsRecording() {
		span.SetAttributes(attribute.String("error.type", errorType(err)))
		span.SetStatus(codes.Error, err.Error())
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
