package qdrant_test

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc/codes"

	"github.com/ragpilot/ragpilot/retriever/qdrant"
)

// TestSpans: one a call, with its attempts and the kind of its error, and without the question and any text of an error.
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
	if text := spans[0].Status().Description; text != "" {
		t.Errorf("the status has the error's text %q", text)
	}
	got := attributes(spans[0].Attributes())
	got["status"] = spans[0].Status().Code.String()
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
	for i, e := range spans[0].Events() {
		want := map[string]string{"attempt": strconv.Itoa(i + 1), "error.type": "unavailable"}
		if diff := cmp.Diff(want, attributes(e.Attributes)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", e.Name, diff)
		}
	}
}

func attributes(of []attribute.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range of {
		out[string(a.Key)] = a.Value.String()
	}
	return out
}
