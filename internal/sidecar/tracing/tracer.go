package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const (
	// QueueSpans bounds the spans that wait to be sent; a request has about five.
	QueueSpans = 4096
	// maxText cuts the texts of attributes, in bytes; names of tenants and request IDs have at most 128.
	maxText = 256
	scope   = "github.com/ragpilot/ragpilot"
)

// Options say where spans go. The zero value is off.
type Options struct {
	// Endpoint is the URL of a collector that takes OTLP over HTTP; one without a path is asked at /v1/traces. Empty: off.
	Endpoint string
	// Headers go with each request to the collector. They hold secrets.
	Headers map[string]string
	// Sample is the share of traces, 0…1, that are recorded, if the client's traceparent does not say whether to.
	Sample float64
	// Version is this program's. Empty: that of the build.
	Version string
	// Log gets a line, at most once in ten minutes, if spans get lost. Nil: slog.Default.
	Log *slog.Logger
	// Registry gets ragpilot_trace_spans_total. Nil: it is not counted.
	Registry prometheus.Registerer
	// Exporter takes the spans in place of a collector at Endpoint, for tests.
	Exporter sdktrace.SpanExporter
	Now      func() time.Time // for the log; nil: time.Now
}

// Tracer makes spans. A nil one makes none. Safe for concurrent use.
type Tracer struct {
	tracer   trace.Tracer
	provider *sdktrace.TracerProvider
	queue    *queue
	exporter *exporter
	closing  sync.Once
}

// Open returns a Tracer, and nil if o says that tracing is off. It connects to nothing: a collector that is not there is found
// out later. The other settings of the exporter are the OTEL_EXPORTER_OTLP_ variables for certificates, timeout,
// compression and protocol; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say who we are. An error names a variable, and
// never shows the value of one that holds headers.
func Open(ctx context.Context, o Options) (*Tracer, error) {
	if o.Endpoint == "" && o.Exporter == nil {
		return nil, nil // a nil Tracer does nothing
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Version == "" {
		o.Version = buildVersion()
	}
	if o.Exporter == nil {
		var err error
		if o.Exporter, err = dial(ctx, o); err != nil {
			return nil, fmt.Errorf("trace.endpoint: %w", err)
		}
	}
	spans, err := counter(o.Registry)
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	who, err := service(ctx, o.Version)
	if err != nil {
		o.Log.Warn("OTEL_RESOURCE_ATTRIBUTES is only understood in part")
	}
	q := newQueue(spans)
	e := newExporter(o, q, spans)
	q.SpanProcessor = sdktrace.NewBatchSpanProcessor(e, sdktrace.WithMaxQueueSize(QueueSpans))
	limits := sdktrace.NewSpanLimits()
	if limits.AttributeValueLengthLimit < 0 || limits.AttributeValueLengthLimit > maxText {
		limits.AttributeValueLengthLimit = maxText
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(q), sdktrace.WithResource(who), sdktrace.WithRawSpanLimits(limits),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(o.Sample))),
	)
	t := provider.Tracer(scope, trace.WithInstrumentationVersion(o.Version))
	return &Tracer{tracer: t, provider: provider, queue: q, exporter: e}, nil
}

// dial returns the exporter to a collector.
func dial(ctx context.Context, o Options) (sdktrace.SpanExporter, error) {
	endpoint, err := withPath(o.Endpoint)
	if err != nil {
		return nil, err
	}
	// The exporter reads these itself, and writes what it does not understand of them to standard error.
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		if _, err := ParseHeaders(os.Getenv(name)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"} {
		if os.Getenv(name) == "grpc" {
			o.Log.Warn("traces are sent over HTTP: a port for gRPC does not take them", "variable", name, "value", "grpc")
		}
	}
	return otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint), otlptracehttp.WithHeaders(o.Headers))
}

// service says who we are; the environment may say otherwise.
func service(ctx context.Context, version string) (*resource.Resource, error) {
	return resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "ragpilot"), attribute.String("service.version", version),
	), resource.WithFromEnv())
}

// buildVersion is the module's version, the revision of a build from a checkout, or "devel".
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return "devel"
}

// Start begins a span below the one in ctx, and returns a context with it. Below one that is not recorded it does nothing.
func (t *Tracer) Start(ctx context.Context, name string) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	if up := trace.SpanContextFromContext(ctx); up.IsValid() && !up.IsSampled() && !up.IsRemote() {
		return ctx, Span{}
	}
	return t.start(ctx, name, trace.SpanKindInternal)
}

// Current returns the span in ctx.
func (t *Tracer) Current(ctx context.Context) Span {
	if t == nil {
		return Span{}
	}
	return recorded(trace.SpanFromContext(ctx), trace.SpanKindServer)
}

func (t *Tracer) start(ctx context.Context, name string, kind trace.SpanKind, attributes ...attribute.KeyValue) (context.Context, Span) {
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
	return ctx, recorded(span, kind)
}

func recorded(span trace.Span, kind trace.SpanKind) Span {
	if !span.IsRecording() {
		return Span{}
	}
	return Span{span: span, client: kind == trace.SpanKindClient}
}

// Flush sends what has ended, and waits for it until ctx ends.
func (t *Tracer) Flush(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.ForceFlush(ctx)
}

// Close sends what has ended, and waits for it until ctx ends; what is not sent then is given up. Spans that end later
// are dropped. No goroutine is left behind. Only the first call does something.
func (t *Tracer) Close(ctx context.Context) (err error) {
	if t == nil {
		return nil
	}
	t.closing.Do(func() {
		t.queue.closed.Store(true)
		err = t.queue.Shutdown(ctx)
		t.exporter.cancel()
		<-t.exporter.ended
	})
	return err
}
