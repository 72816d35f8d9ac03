package sidecar_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// A real receiver gets all spans of the last request before the server has stopped.
func TestSpansReachACollector(t *testing.T) {
	var mu sync.Mutex
	var got []*collector.ExportTraceServiceRequest
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		batch := new(collector.ExportTraceServiceRequest)
		if err := proto.Unmarshal(text, batch); err != nil {
			t.Error(err)
		}
		if r.URL.Path != "/v1/traces" || r.Header.Get("Api-Key") != "collectors-key" {
			t.Errorf("%s %v", r.URL.Path, r.Header)
		}
		mu.Lock()
		got = append(got, batch)
		mu.Unlock()
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer receiver.Close()
	s := serveTraced(t, func(c *settings.Config) {
		variables := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.URL, "OTEL_EXPORTER_OTLP_HEADERS": "api-key=collectors-key"}
		from, err := settings.Source{Env: func(name string) (string, bool) { v, ok := variables[name]; return v, ok }}.Load()
		if err != nil {
			t.Fatal(err)
		}
		c.Trace = from.Trace
	})
	s.post(t, "/v1/chat/completions", asking("collected?", 0), "Traceparent", traceparent)
	s.stop()
	receiver.Close()
	names := map[string]int{}
	for _, batch := range got {
		for _, rs := range batch.GetResourceSpans() {
			if text := rs.GetResource().String(); !strings.Contains(text, `"ragpilot"`) {
				t.Error(text)
			}
			for _, ss := range rs.GetScopeSpans() {
				for _, x := range ss.GetSpans() {
					names[x.GetName()]++
					if fmt.Sprintf("%x", x.GetTraceId()) != clientTrace {
						t.Errorf("%s is of trace %x", x.GetName(), x.GetTraceId())
					}
				}
			}
		}
	}
	if fmt.Sprint(names) != "map[POST /v1/chat/completions:1 forward:1 parse:1 plan:1 read:1]" {
		t.Error(names)
	}
	if n := counterOf(t, s.registry, "exported"); n != 5 {
		t.Errorf("%v spans counted", n)
	}
	if strings.Contains(s.log.String(), "collectors-key") {
		t.Error(s.log)
	}
}

func counterOf(t *testing.T, reg *prometheus.Registry, result string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "ragpilot_trace_spans_total" && m.GetLabel()[0].GetValue() == result {
				return m.GetCounter().GetValue()
			}
		}
	}
	return -1
}

// A collector that is not there costs spans and nothing else.
func TestCollectorIsDown(t *testing.T) {
	nobody := "http://" + testkit.FreeAddress(t)
	s := serveTraced(t, func(c *settings.Config) {
		c.Trace.Endpoint, c.Trace.Headers = nobody, "api-key=collectors-key"
	})
	for i := range 3 {
		if code := s.post(t, "/v1/chat/completions", asking(fmt.Sprint("question ", i), i)); code != http.StatusOK {
			t.Error(code)
		}
		if err := s.tracer.Flush(t.Context()); err != nil {
			t.Error(err)
		}
	}
	s.stop()
	if n := counterOf(t, s.registry, "failed"); n != 15 {
		t.Errorf("%v spans counted", n)
	}
	if text := s.log.String(); strings.Count(text, "traces are lost") != 1 || strings.Contains(text, "collectors-key") {
		t.Error(text)
	}
}
