package elastic

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/ragpilot/ragpilot/retriever/store"
)

// startSpan opens a span with the attributes that OpenTelemetry's conventions for databases name. Questions and texts are
// not among them.
func (x *Index) startSpan(ctx context.Context, op string) (context.Context, trace.Span) {
	ctx, span := x.tracer.Start(ctx, op+" "+x.opts.Index, trace.WithSpanKind(trace.SpanKindClient))
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String("db.system.name", "elasticsearch"),
			attribute.String("db.operation.name", op),
			attribute.String("db.collection.name", x.opts.Index))
	}
	return ctx, span
}

func eventRetry(ctx context.Context, attempt int, err error) {
	span := trace.SpanFromContext(ctx)
	if span.IsRecording() {
		span.AddEvent("retry", trace.WithAttributes(attribute.Int("attempt", attempt), attribute.String("error.type", errorType(err))))
	}
}

func failSpan(span trace.Span, err error) {
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
