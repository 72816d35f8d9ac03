package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/ragpilot/ragpilot/internal/sidecar/server"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/sidecar/tracing"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func memory(t *testing.T, log io.Writer) (*tracing.Tracer, *tracetest.InMemoryExporter) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	tracer, err := tracing.Open(
		context.Background(),
		tracing.Options{Exporter: spans, Sample: 1, Log: server.NewLogger(log, "text", settings.NewLive(onFreePorts()))},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tracer.Close(context.Background()) })
	return tracer, spans
}

// TestRequestSpans: every request but probes has a span that says how it ended, also if it never reached the API.
func TestRequestSpans(t *testing.T) {
	r := &running{log: new(testkit.Log)}
	cfg := onFreePorts(func(c *settings.Config) { c.Keys = twoTeams })
	tracer, spans := memory(t, r.log)
	live := settings.NewLive(cfg)
	var inside trace.SpanContext
	r.begin(t, cfg, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inside = trace.SpanContextFromContext(r.Context())
		switch r.URL.Path {
		case "/search":
			panic("a prompt")
		case "/insert":
			_, _ = io.WriteString(w, "half an ans")
			panic("a prompt")
		}
		hello(w, r)
	}), server.Options{Live: live, Logger: server.NewLogger(r.log, cfg.LogFormat, live), Tracer: tracer})
	const traceID = "0af7651916cd43dd8448eb211c80319c"
	r.ask(
		t,
		http.MethodPost,
		r.url+"/v1/chat/completions?secret=1",
		strings.NewReader("a prompt"),
		"x-api-key",
		"red-key",
		"X-Request-Id",
		"from-client:1",
		"Traceparent",
		"00-"+traceID+"-b7ad6b7169203331-01",
	)
	if inside.TraceID().String() != traceID || inside.IsRemote() {
		t.Errorf("the API sees %v", inside)
	}
	r.get(t, r.url+"/any/path", "x-api-key", "no key")
	r.get(t, r.url+"/search", "x-api-key", "red-key")
	if res, err := r.client.Do(mustRequest(t, r.url+"/insert", "red-key")); err == nil {
		_, _ = io.ReadAll(res.Body)
		_ = res.Body.Close()
	}
	r.get(t, r.url+"/healthz")
	r.get(t, r.url+"/readyz")
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	var got []string
	for _, s := range spans.GetSpans() { // nobody flushed: the server did, before it ended
		line := s.Name + " " + s.SpanKind.String() + " " + s.Status.Code.String()
		for _, a := range s.Attributes {
			if a.Key != tracing.RequestID && a.Key != tracing.Method && a.Key != tracing.Route {
				line += fmt.Sprintf(" %s=%v", a.Key, a.Value.AsInterface())
			}
		}
		if strings.Contains(fmt.Sprint(s), "a prompt") || len(s.Events) > 0 {
			t.Errorf("%+v", s)
		}
		got = append(got, line)
	}
	want := []string{
		"POST /v1/chat/completions server Unset ragpilot.tenant=red http.response.status_code=200",
		"GET other server Unset http.response.status_code=401",
		"GET /search server Error ragpilot.tenant=red http.response.status_code=500 error.type=500",
		"POST /insert server Error ragpilot.tenant=red http.response.status_code=200 error.type=aborted",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	testkit.Contains(t, "log", r.log.String(), "trace_id="+traceID)
	if strings.Count(r.log.String(), "trace_id=") != len(want) {
		t.Error(r.log)
	}
}

func mustRequest(t *testing.T, url, key string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("a prompt")) // which is not sent again
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", key)
	return r
}

// hanging is an exporter, a named fake, whose collector never answers.
type hanging struct{ asked chan struct{} }

func (h hanging) ExportSpans(ctx context.Context, _ []sdktrace.ReadOnlySpan) error {
	close(h.asked)
	<-ctx.Done()
	return ctx.Err()
}
func (hanging) Shutdown(context.Context) error { return nil }

// TestCollectorDoesNotHoldUp: a collector that hangs gets no longer than the time for draining, and then little.
func TestCollectorDoesNotHoldUp(t *testing.T) {
	h := hanging{make(chan struct{})}
	r := &running{log: new(testkit.Log)}
	cfg := onFreePorts(func(c *settings.Config) { c.Timeouts.Drain = 0 })
	tracer, err := tracing.Open(
		context.Background(),
		tracing.Options{Exporter: h, Sample: 1, Log: server.NewLogger(r.log, "text", settings.NewLive(cfg))},
	)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		_ = tracer.Close(over)
	}()
	r.begin(t, cfg, http.HandlerFunc(hello), server.Options{Tracer: tracer})
	r.get(t, r.url+"/")
	began := time.Now()
	_ = r.stop() // with no time to drain a connection that is idle may count as cut
	select {
	case <-h.asked:
	default:
		t.Error("the collector was not asked")
	}
	if took := time.Since(began); took > testkit.Patience {
		t.Errorf("it took %v", took)
	}
}
