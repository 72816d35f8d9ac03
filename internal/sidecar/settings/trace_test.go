package settings_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/sidecar/tracing"
)

// TestTraceLayers: file, OpenTelemetry's variables, flags; the later ones win, and what is for traces over what is for all.
func TestTraceLayers(t *testing.T) {
	file := write(t, "r.yaml", "trace:\n  endpoint: http://file:4318\n  headers: a=file\n  sample: 0.5\n")
	const base, traces = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	cases := []struct {
		name string
		env  []string
		want settings.Trace
	}{
		{"file", nil, settings.Trace{Endpoint: "http://file:4318", Headers: "a=file", Sample: 0.5}},
		{"empty variables", []string{base, "", traces, " ", "OTEL_TRACES_SAMPLER", ""}, settings.Trace{Endpoint: "http://file:4318", Headers: "a=file", Sample: 0.5}},
		{"for everything", []string{base, "http://env:4318", "OTEL_EXPORTER_OTLP_HEADERS", "a=env"}, settings.Trace{Endpoint: "http://env:4318/v1/traces", Headers: "a=env", Sample: 0.5}},
		{"below a path", []string{base, "https://env/otlp/"}, settings.Trace{Endpoint: "https://env/otlp/v1/traces", Headers: "a=file", Sample: 0.5}},
		{
			"for traces",
			[]string{base, "http://env:4318", traces, "http://traces/here", "OTEL_EXPORTER_OTLP_HEADERS", "a=env", "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "a=traces"},
			settings.Trace{Endpoint: "http://traces/here", Headers: "a=traces", Sample: 0.5},
		},
		{"for traces, as it is", []string{traces, "http://traces:4318"}, settings.Trace{Endpoint: "http://traces:4318/", Headers: "a=file", Sample: 0.5}},
		{"switched off", []string{base, "http://env:4318", "OTEL_SDK_DISABLED", "TRUE"}, settings.Trace{Headers: "a=file", Sample: 0.5}},
		{"no exporter", []string{traces, "http://env:4318", "OTEL_TRACES_EXPORTER", "none"}, settings.Trace{Headers: "a=file", Sample: 0.5}},
		{"all", []string{"OTEL_TRACES_SAMPLER", "always_on"}, settings.Trace{Endpoint: "http://file:4318", Headers: "a=file", Sample: 1}},
		{"none", []string{"OTEL_TRACES_SAMPLER", "parentbased_always_off"}, settings.Trace{Endpoint: "http://file:4318", Headers: "a=file"}},
		{"share", []string{"OTEL_TRACES_SAMPLER", "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG", "0.125"}, settings.Trace{Endpoint: "http://file:4318", Headers: "a=file", Sample: 0.125}},
		{"share of nothing told", []string{"OTEL_TRACES_SAMPLER", "traceidratio"}, settings.Trace{Endpoint: "http://file:4318", Headers: "a=file", Sample: 1}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := settings.Source{File: file, Env: env(c.env...)}.Load()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.Trace); diff != "" {
				t.Error(diff)
			}
		})
	}
	c, err := settings.Source{File: file, Env: env(base, "http://env:4318"), Flags: func(c *settings.Config) error { c.Trace.Endpoint = "http://flag"; return nil }}.Load()
	if err != nil || c.Trace.Endpoint != "http://flag" {
		t.Error(c.Trace, err)
	}
	if d := settings.Default().Trace; d != (settings.Trace{Sample: 1}) {
		t.Error("default:", d)
	}
}

// TestBadTrace: an error names the field or variable, and never a header.
func TestBadTrace(t *testing.T) {
	for text, want := range map[string][]string{
		"{endpoint: 'localhost:4318'}":                                            {`trace.endpoint "localhost:4318"`, "http or https"},
		"{endpoint: 'http://:4318'}":                                              {`trace.endpoint "http://:4318"`, "no host"},
		"{endpoint: 'http://h/v1/traces?key=1'}":                                  {"trace.endpoint", "query"},
		"{endpoint: 'http://user:hush@h/'}":                                       {"trace.endpoint", "trace.headers"},
		"{endpoint: 'http://h', headers: 'hush'}":                                 {"trace.headers [redacted]: header 1"},
		"{endpoint: 'http://h', headers: 'a=hush', headers_file: does-not-exist}": {"trace.headers", "both", "does-not-exist"},
		"{headers_file: does-not-exist}":                                          {"trace.headers", "does-not-exist"},
		"{sample: 1.5}":                                                           {"trace.sample 1.5", "0 to 1"},
		"{sample: half}":                                                          {"line 1", "trace.sample", `"half"`},
		"{samples: 1}":                                                            {"line 1", "trace.samples", "unknown"},
	} {
		_, err := settings.Source{File: write(t, "r.yaml", "trace: "+text+"\n")}.Load()
		if !errors.Is(err, settings.ErrBadConfig) {
			t.Errorf("%s: %v", text, err)
			continue
		}
		contains(t, text, err.Error(), want...)
		if strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: the error shows a secret: %v", text, err)
		}
	}
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://", "OTEL_TRACES_SAMPLER": "jaeger_remote",
	} {
		_, err := settings.Source{Env: env(name, value)}.Load()
		if !errors.Is(err, settings.ErrBadConfig) || !strings.Contains(err.Error(), name+" "+`"`+value+`"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (settings.Source{Env: env("OTEL_TRACES_SAMPLER", "traceidratio", "OTEL_TRACES_SAMPLER_ARG", "2")}).Load(); !errors.Is(err, settings.ErrBadConfig) || !strings.Contains(err.Error(), `OTEL_TRACES_SAMPLER_ARG "2"`) {
		t.Error(err)
	}
	c := settings.Default()
	c.Trace.Sample = math.NaN()
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "trace.sample NaN") {
		t.Error(err)
	}
}

// TestTraceSecrets: headers come from a file, and are shown nowhere.
func TestTraceSecrets(t *testing.T) {
	file := write(t, "headers", "Authorization=Bearer%20hush\n")
	c, err := settings.Source{File: write(t, "r.yaml", "trace: {endpoint: 'http://h:4318', headers_file: '"+file+"'}\n")}.Load()
	if err != nil || c.Trace.Headers.Reveal() != "Authorization=Bearer%20hush" || c.Trace.HeadersFile != "" {
		t.Fatal(c.Trace, err)
	}
	c.Trace.Endpoint = "http://user:hush@h:4318" // Validate refuses it
	for _, text := range []string{c.String(), c.LogValue().String(), fmt.Sprintf("%#v", c.Trace.Headers)} {
		if strings.Contains(text, "hush") {
			t.Error(text)
		}
	}
	c = onFreePorts()
	c.Trace.Headers = "a=hush"
	contains(t, "warnings", strings.Join(c.Warnings(), "\n"), "trace.headers has no effect without trace.endpoint")
}

func memory(t *testing.T, log io.Writer) (*tracing.Tracer, *tracetest.InMemoryExporter) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	tracer, err := tracing.Open(context.Background(), tracing.Options{Exporter: spans, Sample: 1, Log: settings.NewLogger(log, "text", settings.NewLive(onFreePorts()))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tracer.Close(context.Background()) })
	return tracer, spans
}

// TestRequestSpans: every request but probes has a span that says how it ended, also if it never reached the API.
func TestRequestSpans(t *testing.T) {
	r := &running{log: new(logs)}
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
	}), settings.Options{Live: live, Logger: settings.NewLogger(r.log, cfg.LogFormat, live), Tracer: tracer})
	const traceID = "0af7651916cd43dd8448eb211c80319c"
	r.ask(t, http.MethodPost, r.url+"/v1/chat/completions?secret=1", strings.NewReader("a prompt"), "x-api-key", "red-key", "X-Request-Id", "from-client:1", "Traceparent", "00-"+traceID+"-b7ad6b7169203331-01")
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
	contains(t, "log", r.log.String(), "trace_id="+traceID)
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
	r := &running{log: new(logs)}
	cfg := onFreePorts(func(c *settings.Config) { c.Timeouts.Drain = 0 })
	tracer, err := tracing.Open(context.Background(), tracing.Options{Exporter: h, Sample: 1, Log: settings.NewLogger(r.log, "text", settings.NewLive(cfg))})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		_ = tracer.Close(over)
	}()
	r.begin(t, cfg, http.HandlerFunc(hello), settings.Options{Tracer: tracer})
	r.get(t, r.url+"/")
	began := time.Now()
	_ = r.stop() // with no time to drain a connection that is idle may count as cut
	select {
	case <-h.asked:
	default:
		t.Error("the collector was not asked")
	}
	if took := time.Since(began); took > patience {
		t.Errorf("it took %v", took)
	}
}
