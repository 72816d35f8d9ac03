package qdrant_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc/codes"

	"github.com/ragpilot/ragpilot/retriever/qdrant"
)

// TestSpans: one a call, with its attempts and its error, and without the question.
func TestSpans(t *testing.T) {
	_, client := newFake(t, failing(99, codes.Unavailable, map[string]int{}))
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	opts := with(dense, qdrant.Options{Client: client})
	opts.Tracer = provider
	if err := search(t.Context(), open(t, opts)); err == nil {
		t.Fatal("no error")
	}
	spans := recorder.Ended()
	if len(spans) != 1 || spans[0].Name() != "search test" {
		t.Fatalf("spans %v, want one", spans)
	}
	got := map[string]string{"status": spans[0].Status().Code.String()}
	for _, a := range spans[0].Attributes() {
		got[string(a.Key)] = a.Value.String()
	}
	want := map[string]string{
		"db.system.name": "qdrant", "db.operation.name": "search", "db.collection.name": "test", "ragpilot.k": "3",
		"error.type": "unavailable", "status": "Error",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(spans[0].Events()) != 2 {
		t.Errorf("%d events, want two retries", len(spans[0].Events()))
	}
}
