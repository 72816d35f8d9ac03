package sidecar_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/internal/lab/upstream"
	"github.com/ragpilot/ragpilot/internal/sidecar"
	"github.com/ragpilot/ragpilot/internal/sidecar/server"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/sidecar/tracing"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// failer is what tests and properties are.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// tracedEngine is the simulated engine behind HTTP; it keeps the headers it got, and answers otherwise if a test wants that.
type tracedEngine struct {
	*httptest.Server
	mu      sync.Mutex
	headers []http.Header
	answer  http.HandlerFunc
}

func newTracedEngine(t *testing.T) *tracedEngine {
	e := &tracedEngine{}
	sim := upstream.New(upstream.Options{Tokens: 8})
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		e.headers = append(e.headers, r.Header.Clone())
		answer := e.answer
		e.mu.Unlock()
		if answer == nil {
			answer = sim.ServeHTTP
		}
		answer(w, r)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *tracedEngine) last(t failer) http.Header {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.headers) == 0 {
		t.Fatal("nothing arrived")
	}
	return e.headers[len(e.headers)-1]
}

// tracedServer is all of `ragpilot serve` in front of a tracedEngine.
type tracedServer struct {
	url      string
	engine   *tracedEngine
	spans    *tracetest.InMemoryExporter // unless the configuration names a collector
	tracer   *tracing.Tracer
	registry *prometheus.Registry
	log      *testkit.Log
	client   *http.Client
	stop     func()
}

func serveTraced(t *testing.T, change func(*settings.Config)) *tracedServer {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	// go-redis, in an earlier test, dials a server that was away once a second, in a goroutine that ends up to a second after Close.
	closing := goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial")
	t.Cleanup(func() { goleak.VerifyNone(t, leaks, closing) }) // the last one, when all has been closed
	s := &tracedServer{
		engine:   newTracedEngine(t),
		registry: server.NewRegistry(),
		log:      new(testkit.Log),
		spans:    tracetest.NewInMemoryExporter(),
	}
	cfg := settings.Default()
	cfg.Compat = true
	cfg.Listen, cfg.AdminAddr, cfg.InferAPIURL = "127.0.0.1:0", "", s.engine.URL
	if change != nil {
		change(&cfg)
	}
	logger := slog.New(slog.NewTextHandler(s.log, nil))
	o := sidecar.Options{Registry: s.registry, Log: logger}
	if cfg.Trace.Endpoint == "" && cfg.Trace.Sample > 0 {
		var err error
		if o.Tracer, err = tracing.Open(t.Context(), tracing.Options{Exporter: s.spans, Sample: cfg.Trace.Sample}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = o.Tracer.Close(context.Background()) })
	}
	api, err := sidecar.New(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	s.tracer = api.Tracer()
	server, err := server.New(cfg, api, server.Options{Logger: logger, Registry: s.registry, Tracer: api.Tracer()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	transport := &http.Transport{}
	s.client = &http.Client{Transport: transport}
	s.stop = sync.OnceFunc(func() {
		transport.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := api.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(s.stop)
	select {
	case <-server.Listening():
	case err := <-ended:
		t.Fatal(err)
	}
	s.url = "http://" + server.Addr()
	return s
}

// post sends a body; header holds names and values in turn.
func (s *tracedServer) post(t failer, path string, body any, header ...string) int {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return s.send(t, path, text, header...)
}

func (s *tracedServer) send(t failer, path string, text []byte, header ...string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.url+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	resp, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// ended returns the spans that have ended since it was last asked, once those of all requests that were answered have.
func (s *tracedServer) ended(t failer, requests int) tracetest.SpanStubs {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if err := s.tracer.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		spans, n := s.spans.GetSpans(), 0
		for _, x := range spans {
			if x.SpanKind == trace.SpanKindServer { // the last one of a request; a client may read the answer before it ends
				n++
			}
		}
		if n >= requests || time.Now().After(end) {
			s.spans.Reset()
			return spans
		}
	}
}

func named(t failer, spans tracetest.SpanStubs, name string) tracetest.SpanStub {
	t.Helper()
	for _, s := range spans {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no span %q in %v", name, spans.Snapshots())
	return tracetest.SpanStub{}
}

func attributesOf(list []attribute.KeyValue) map[string]any {
	out := map[string]any{}
	for _, a := range list {
		out[string(a.Key)] = a.Value.AsInterface()
	}
	return out
}

func holds(t *testing.T, s tracetest.SpanStub, want map[string]any) {
	t.Helper()
	got := attributesOf(s.Attributes)
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s: %s is %v, want %v", s.Name, name, got[name], value)
		}
	}
}
