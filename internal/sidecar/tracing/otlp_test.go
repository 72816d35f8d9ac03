package tracing_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/ragpilot/ragpilot/internal/sidecar/tracing"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// failing is an exporter, a named fake, that has an error each time.
type failing struct{ err error }

func (f failing) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return f.err }
func (failing) Shutdown(context.Context) error                               { return nil }

// TestCollector: a collector gets what the protocol says, at the endpoint and with the headers that were given.
func TestCollector(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://not.asked.invalid")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-of=environment")
	type got struct {
		path, key, env, kind string
		*collector.ExportTraceServiceRequest
	}
	requests := make(chan got, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		h := r.Header
		g := got{r.URL.Path, h.Get("X-Key"), h.Get("X-Of"), h.Get("Content-Type"), new(collector.ExportTraceServiceRequest)}
		if err := proto.Unmarshal(text, g.ExportTraceServiceRequest); err != nil {
			t.Error(err)
		}
		requests <- g
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer server.Close()
	for path, want := range map[string]string{"": "/v1/traces", "/": "/", "/otlp/v1/traces": "/otlp/v1/traces"} {
		r := open(t, func(o *tracing.Options) {
			o.Exporter, o.Endpoint, o.Headers, o.Version = nil, server.URL+path, map[string]string{"x-key": "hush"}, "v1.2.3"
		})
		_, span := r.Start(t.Context(), "plan")
		span.Int(tracing.Documents, 15)
		span.End()
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		g := <-requests
		if g.path != want || g.key != "hush" || g.env != "" || g.kind != "application/x-protobuf" {
			t.Errorf("%q: %v", path, g)
		}
		batch := g.GetResourceSpans()[0]
		text := batch.GetResource().String()
		for _, part := range []string{`"service.name"`, `"ragpilot"`, `"service.version"`, `"v1.2.3"`} {
			if !strings.Contains(text, part) {
				t.Errorf("resource %s has no %s", text, part)
			}
		}
		s := batch.GetScopeSpans()[0].GetSpans()[0]
		if a := s.GetAttributes(); s.GetName() != "plan" || len(a) != 1 || a[0].GetKey() != tracing.Documents ||
			a[0].GetValue().GetIntValue() != 15 {
			t.Errorf("%v", s)
		}
		if got := r.counted(t); got != "dropped 0, exported 1, failed 0" || r.log.String() != "" {
			t.Errorf("%s, log %s", got, r.log)
		}
	}
}

// TestCollectorThatIsNone: there is none, or it refuses: counted, logged once, never with the headers.
func TestCollectorThatIsNone(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "who are you?", http.StatusUnauthorized)
	}))
	defer refusing.Close()
	closed := "http://" + testkit.FreeAddress(t)
	for url, want := range map[string]string{refusing.URL: "401", closed: "connect"} {
		r := open(t, func(o *tracing.Options) {
			o.Exporter, o.Endpoint, o.Headers = nil, url, map[string]string{"Authorization": "Bearer hush"}
		})
		for range 3 {
			_, span := r.Start(t.Context(), "plan")
			span.End()
			if err := r.Flush(t.Context()); err != nil {
				t.Error(err)
			}
		}
		text := r.log.String()
		if n := strings.Count(text, "\n"); n != 1 || !strings.Contains(text, want) || !strings.Contains(text, "level=WARN") ||
			strings.Contains(text, "hush") {
			t.Errorf("%d lines: %s", n, text)
		}
		if got := r.counted(t); got != "dropped 0, exported 0, failed 3" {
			t.Error(got)
		}
	}
}

// TestCollectorThatHangs: Close gives up when its context ends, and leaves nothing behind.
func TestCollectorThatHangs(t *testing.T) {
	asked := make(chan struct{}, 10)
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer hanging.Close()
	r := open(t, func(o *tracing.Options) { o.Exporter, o.Endpoint = nil, hanging.URL })
	_, span := r.Start(t.Context(), "plan")
	span.End()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if err := r.Close(ctx); err == nil {
		t.Error("the span was not sent")
	}
	if got := r.counted(t); got != "dropped 0, exported 0, failed 1" {
		t.Error(got)
	}
}

// TestEnvironmentIsNotShown: the exporter would write headers that it does not understand to standard error.
func TestEnvironmentIsNotShown(t *testing.T) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "a=b,Authorization: Bearer hush")
			_, err := tracing.Open(t.Context(), tracing.Options{Endpoint: "http://localhost:1"})
			if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "hush") {
				t.Error(err)
			}
		})
	}
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	r := open(t, func(o *tracing.Options) { o.Exporter, o.Endpoint = nil, "http://localhost:1" })
	if text := r.log.String(); !strings.Contains(text, "gRPC") || !strings.Contains(text, "OTEL_EXPORTER_OTLP_PROTOCOL") {
		t.Errorf("log %q", text)
	}
}
