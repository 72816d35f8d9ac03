package tracing_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/internal/sidecar/tracing"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen. Nothing waits that long when all is well.
const patience = time.Minute

// traced is a tracer, what it sent and said, and its counters.
type traced struct {
	*tracing.Tracer
	spans    *tracetest.InMemoryExporter
	log      *testkit.Log
	registry *prometheus.Registry
}

func open(t testing.TB, change func(*tracing.Options)) *traced {
	t.Helper()
	r := &traced{spans: tracetest.NewInMemoryExporter(), log: new(testkit.Log), registry: prometheus.NewRegistry()}
	o := tracing.Options{Sample: 1, Exporter: r.spans, Log: slog.New(slog.NewTextHandler(r.log, nil)), Registry: r.registry}
	if change != nil {
		change(&o)
	}
	var err error
	if r.Tracer, err = tracing.Open(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	return r
}

// sent returns the spans that have ended.
func (r *traced) sent(t testing.TB) tracetest.SpanStubs {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	return r.spans.GetSpans()
}

// counted returns the numbers of spans exported, failed and dropped.
func (r *traced) counted(t testing.TB) string {
	t.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			out = append(out, fmt.Sprintf("%s %v", m.GetLabel()[0].GetValue(), m.GetCounter().GetValue()))
		}
	}
	return strings.Join(out, ", ") // the registry sorts
}

// attributes shows a span's attributes and events' names.
func attributes(s tracetest.SpanStub) string {
	var out []string
	for _, a := range s.Attributes {
		out = append(out, fmt.Sprintf("%s=%v", a.Key, a.Value.AsInterface()))
	}
	for _, e := range s.Events {
		out = append(out, "("+e.Name+")")
	}
	return strings.Join(out, " ")
}

// stuck is an exporter, a named fake, whose collector never answers; it ends with the context.
type stuck struct {
	called chan int // spans of each batch
}

func (s *stuck) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	s.called <- len(spans)
	<-ctx.Done()
	return ctx.Err()
}

func (*stuck) Shutdown(context.Context) error { return nil }
