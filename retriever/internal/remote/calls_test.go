package remote_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/ragpilot/ragpilot/retriever/internal/remote"
	"github.com/ragpilot/ragpilot/retriever/store"
)

func named(attrs []attribute.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range attrs {
		out[string(a.Key)] = a.Value.String()
	}
	return out
}

// TestSpan: what was done, to what, and of errors their kind alone.
func TestSpan(t *testing.T) {
	for kind, err := range map[string]error{
		"canceled":     context.Canceled,
		"timeout":      errors.Join(store.ErrUnavailable, context.DeadlineExceeded),
		"unavailable":  store.ErrUnavailable,
		"unauthorized": store.ErrUnauthorized,
		"no_index":     store.ErrNoIndex,
		"bad_query":    store.ErrBadQuery,
		"bad_document": store.ErrBadDocument,
		"closed":       store.ErrClosed,
		"other":        errors.New("something else"),
	} {
		t.Run(kind, func(t *testing.T) {
			err := fmt.Errorf("a secret text: %w", err)
			spans := tracetest.NewSpanRecorder()
			tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("")
			calls := remote.Calls{Package: "a package", System: "a database", Index: "docs", Attempts: 2, Tracer: tracer}
			_ = calls.Do(t.Context(), "search", func(ctx context.Context) error {
				return calls.Retry(ctx, func(error) bool { return true }, func() error { return err })
			}, attribute.Int("ragpilot.k", 3))

			got := spans.Ended()[0]
			if status := got.Status(); got.Name() != "search docs" || status.Code.String() != "Error" || status.Description != "" {
				t.Errorf("span %q with status %+v, want an error without a text", got.Name(), status)
			}
			want := map[string]string{
				"db.system.name": "a database", "db.operation.name": "search", "db.collection.name": "docs", "ragpilot.k": "3", "error.type": kind,
			}
			if diff := cmp.Diff(want, named(got.Attributes())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if len(got.Events()) != 1 {
				t.Fatalf("%d events, want one retry", len(got.Events()))
			}
			if diff := cmp.Diff(map[string]string{"attempt": "1", "error.type": kind}, named(got.Events()[0].Attributes)); diff != "" {
				t.Errorf("retry: -want +got:\n%s", diff)
			}
		})
	}
}
