package tracing_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"

	"github.com/ragpilot/ragpilot/internal/sidecar/tracing"
)

// TestOff: without an endpoint there is no tracer, and code that is traced pays nothing for that.
func TestOff(t *testing.T) {
	tracer, err := tracing.Open(t.Context(), tracing.Options{Sample: 1})
	if err != nil || tracer != nil {
		t.Fatal(tracer, err)
	}
	if next := http.DefaultTransport; tracer.Transport(next) != next {
		t.Error("another transport")
	}
	ctx, h := t.Context(), http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}
	n := testing.AllocsPerRun(1000, func() {
		inside, span := tracer.Server(ctx, h, "POST", "/v1/chat/completions")
		inside, stage := tracer.Start(inside, "plan")
		stage.Int(tracing.Documents, 1000)
		stage.Known(tracing.CachedTokens, 100_000)
		stage.Text(tracing.Tenant, "t")
		stage.Ordered(1000, true)
		stage.Event(tracing.FirstByte)
		stage.Status(500)
		stage.Fail("timeout")
		stage.End()
		if inside != ctx || stage.Recorded() || tracer.Current(inside) != span || span.TraceID() != "" {
			t.Error("something is recorded")
		}
		span.End()
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
	if err := errors.Join(tracer.Flush(ctx), tracer.Close(ctx)); err != nil {
		t.Error(err)
	}
}

// TestSpan: what is set on a span is what is sent.
func TestSpan(t *testing.T) {
	r := open(t, nil)
	ctx, server := r.Server(t.Context(), http.Header{}, "BREW", "/v1/*")
	inside, plan := r.Start(ctx, "plan")
	_, order := r.Start(inside, "order")
	order.End()
	plan.Int(tracing.Documents, 15)
	plan.Known(tracing.PredictedTokens, 0)
	plan.Known(tracing.CachedTokens, -1)
	plan.Text(tracing.Session, "")
	plan.Text(tracing.Tenant, strings.Repeat("ä", 1000))
	plan.Ordered(15, false)
	plan.End()
	plan.Int(tracing.Blocks, 1) // too late
	r.Current(ctx).Int(tracing.Messages, 3)
	server.Status(404)
	server.End()
	spans := r.sent(t)
	if len(spans) != 3 {
		t.Fatal(len(spans))
	}
	o, p, s := spans[0], spans[1], spans[2]
	if p.Parent.SpanID() != s.SpanContext.SpanID() || o.Parent.SpanID() != p.SpanContext.SpanID() || s.Parent.IsValid() ||
		server.TraceID() != s.SpanContext.TraceID().String() {
		t.Errorf("%v %v %v", o, p, s)
	}
	if got, want := attributes(s), "http.request.method=_OTHER http.route=/v1/* ragpilot.messages=3 "+
		"http.response.status_code=404"; got != want || s.Name != "HTTP /v1/*" {
		t.Errorf("%s: %s, want %s", s.Name, got, want)
	}
	if s.Status.Code != codes.Unset {
		t.Error("404 is the client's error:", s.Status)
	}
	want := "ragpilot.documents=15 ragpilot.prefix.predicted_tokens=0 ragpilot.tenant=" + strings.Repeat("ä", 256) + " (ordered)"
	if got := attributes(p); got != want && got != strings.Replace(want, strings.Repeat("ä", 256), strings.Repeat("ä", 128), 1) {
		t.Errorf("%s, want %s", got, want)
	}
	if got := s.Resource.String(); !strings.Contains(got, "service.name=ragpilot") || !strings.Contains(got, "service.version=") {
		t.Error(got)
	}
	if got := r.counted(t); got != "dropped 0, exported 3, failed 0" {
		t.Error(got)
	}
}

// TestService: the environment may name the service otherwise; the version may be given.
func TestService(t *testing.T) {
	t.Setenv("OTEL_SERVICE_NAME", "rag-eu")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	r := open(t, func(o *tracing.Options) { o.Version = "v1.2.3" })
	_, span := r.Start(t.Context(), "a")
	span.End()
	got := r.sent(t)[0].Resource.String()
	for _, part := range []string{
		"service.name=rag-eu", "service.version=v1.2.3", "deployment.environment.name=test", "telemetry.sdk.language=go",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("%s is not in %s", part, got)
		}
	}
}

// TestPanicsAreNotQuoted: OpenTelemetry would write what a panic says, which may be a prompt, into the span that ends.
func TestPanicsAreNotQuoted(t *testing.T) {
	r := open(t, nil)
	func() {
		defer func() { _ = recover() }()
		_, span := r.Start(t.Context(), "a")
		defer span.End()
		panic("a prompt")
	}()
	if s := r.sent(t)[0]; len(s.Events)+len(s.Attributes) != 0 || s.Status.Description != "" {
		t.Errorf("%+v", s)
	}
}

// TestSampling: the client decides if it says so, else the share does, and what is below a span goes with it.
func TestSampling(t *testing.T) {
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"
	for share, want := range map[float64][2]int{0: {0, 0}, 0.25: {200, 300}, 1: {1000, 1000}} {
		r := open(t, func(o *tracing.Options) { o.Sample = share })
		n := 0
		for range 1000 {
			ctx, span := r.Server(t.Context(), http.Header{}, "GET", "/")
			if span.Recorded() {
				n++
			}
			if _, stage := r.Start(ctx, "plan"); stage.Recorded() != span.Recorded() || r.Current(ctx).Recorded() != span.Recorded() {
				t.Fatal("a stage does not go with its request")
			}
		}
		if n < want[0] || n > want[1] {
			t.Errorf("share %v: %d of 1000", share, n)
		}
		for flags, want := range map[string]bool{"00": false, "01": true} {
			if _, span := r.Server(t.Context(), http.Header{"Traceparent": {trace + flags}}, "GET", "/"); span.Recorded() != want {
				t.Errorf("share %v, flags %s: %v", share, flags, span.Recorded())
			}
		}
	}
}

// TestQueueFull: spans that come faster than the collector takes them are dropped and counted; ending them does not wait.
func TestQueueFull(t *testing.T) {
	s := &stuck{called: make(chan int, 100)}
	r := open(t, func(o *tracing.Options) { o.Exporter = s })
	const more = 100
	for range tracing.QueueSpans + more {
		_, span := r.Start(t.Context(), "a")
		span.End()
	}
	if got := r.counted(t); got != "dropped 100, exported 0, failed 0" {
		t.Error(got)
	}
	<-s.called
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Close(over); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if got := r.counted(t); got != "dropped 100, exported 0, failed 4096" {
		t.Error("after it was closed:", got)
	}
	_, late := r.Start(t.Context(), "late")
	late.End()
	if got := r.counted(t); got != "dropped 101, exported 0, failed 4096" {
		t.Error("a late span:", got)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error("closed twice:", err)
	}
}

// TestLost: the log reports lost spans at once and then every ten minutes, and the counters of all of them.
func TestLost(t *testing.T) {
	now := time.Unix(0, 0)
	r := open(t, func(o *tracing.Options) {
		o.Exporter, o.Now = failing{errors.New("no way to the collector " + strings.Repeat("x", 1000))}, func() time.Time { return now }
	})
	lose := func(n int) {
		for range n {
			_, span := r.Start(t.Context(), "a")
			span.End()
		}
		if err := r.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	lines := func(want int, last string) {
		t.Helper()
		text := r.log.String()
		if n := strings.Count(text, "\n"); n != want || !strings.Contains(text, last) || len(text) > 600*want {
			t.Errorf("%d lines, want %d and %q:\n%s", n, want, last, text)
		}
	}
	lose(1)
	lines(1, "level=WARN msg=\"traces are lost, answers go on\" spans=1 error=\"no way to the collector xx")
	now = now.Add(9 * time.Minute)
	lose(2)
	lines(1, "")
	now = now.Add(time.Minute)
	lose(3)
	lines(2, "spans=5 ")
	if got := r.counted(t); got != "dropped 0, exported 0, failed 6" {
		t.Error(got)
	}
}
