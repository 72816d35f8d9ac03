package server_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ragpilot/ragpilot/internal/sidecar/server"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// TestPanic: a handler that panics costs one answer and not the server.
func TestPanic(t *testing.T) {
	r := start(t, onFreePorts(), func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/reorder":
			w.Header().Set("Content-Length", "1000")
			panic("quotes a prompt")
		case "/search":
			var nothing []int
			_ = nothing[len(r.Method)]
		case "/insert":
			_, _ = io.WriteString(w, "half an ans")
			panic(errors.New("late"))
		case "/evict":
			panic(http.ErrAbortHandler)
		default:
			hello(w, r)
		}
	})
	for _, path := range []string{"/reorder", "/search"} {
		got := r.get(t, r.url+path)
		if got.code != http.StatusInternalServerError || got.body != `{"detail":"Internal Server Error"}` ||
			got.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s %v", path, got.code, got.body, got.header)
		}
	}
	for _, path := range []string{"/insert", "/evict"} { // an answer that has begun must not look complete
		req := testkit.Request(t, http.MethodPost, r.url+path, http.NoBody)
		res, err := r.client.Do(req)
		if err == nil {
			_, err = io.ReadAll(res.Body)
			_ = res.Body.Close()
		}
		if err == nil {
			t.Errorf("%s: the client saw a whole answer", path)
		}
	}
	if got := r.get(t, r.url+"/"); got.body != "hello" {
		t.Errorf("afterwards: %d %s", got.code, got.body)
	}
	text := r.get(t, r.admin+"/metrics").body
	testkit.Contains(
		t,
		"metrics",
		text,
		"ragpilot_http_panics_total 3",
		`ragpilot_http_requests_total{code="500",route="/reorder"} 1`,
		`{code="aborted",route="/insert"} 1`,
		`{code="aborted",route="/evict"} 1`,
	)
	testkit.Contains(
		t,
		"log",
		r.log.String(),
		"level=ERROR msg=panic value=string",
		"index out of range [3]",
		"value=*errors.errorString",
		"observe_test.go",
		"aborted=true",
	)
}

// TestRequestLine: every request is one line, with what is needed to find it and nothing of its content.
func TestRequestLine(t *testing.T) {
	var inside string
	r := start(
		t,
		onFreePorts(func(c *settings.Config) { c.LogFormat = "json"; c.Keys = twoTeams }),
		func(w http.ResponseWriter, r *http.Request) {
			inside = server.RequestID(r.Context())
			w.WriteHeader(http.StatusTeapot)
			_, _ = io.WriteString(w, "twelve bytes")
		},
	)
	got := r.ask(
		t,
		http.MethodPost,
		r.url+"/v1/chat/completions?secret=1",
		strings.NewReader("prompt"),
		"x-api-key",
		"red-key",
		"X-Request-Id",
		"from-client:1",
	)
	if id := got.header.Get("X-Ragpilot-Request-Id"); id != "from-client:1" || inside != id {
		t.Errorf("request ID: client %q, API %q", id, inside)
	}
	made := regexp.MustCompile(`^[0-9a-f]{16}$`)
	for _, id := range []string{"", "two words", "line\tbreak", strings.Repeat("x", 129), "quote\""} {
		got := r.get(t, r.url+"/strange", "X-Request-Id", id, "x-api-key", "blue-key")
		if id := got.header.Get("X-Ragpilot-Request-Id"); !made.MatchString(id) || inside != id {
			t.Errorf("request ID: client %q, API %q", id, inside)
		}
	}
	r.ask(t, "BREW", r.url+"/", nil)
	r.get(t, r.url+"/healthz")
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	var lines []map[string]any
	for line := range strings.Lines(r.log.String()) {
		var l map[string]any
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if l["msg"] == "request" {
			lines = append(lines, l)
		}
	}
	if len(lines) != 8 {
		t.Fatalf("%d lines for 8 requests:\n%s", len(lines), r.log)
	}
	first := lines[0]
	if d, ok := first["duration"].(float64); !ok || d <= 0 {
		t.Errorf("duration %v", first["duration"])
	}
	delete(first, "duration")
	delete(first, "time")
	want := map[string]any{
		"level":      "INFO",
		"msg":        "request",
		"method":     "POST",
		"route":      "/v1/chat/completions",
		"status":     418.0,
		"bytes":      12.0,
		"tenant":     "red",
		"request_id": "from-client:1",
	}
	for name, value := range want {
		if first[name] != value {
			t.Errorf("%s: %v, want %v", name, first[name], value)
		}
	}
	if len(first) != len(want) {
		t.Errorf("%v has other fields than %v", first, want)
	}
	for i, want := range map[int]string{5: "other", 6: "/", 7: "/healthz"} {
		if lines[i]["route"] != want {
			t.Errorf("line %d: %v", i, lines[i])
		}
	}
	if lines[6]["method"] != "other" || lines[7]["level"] != "DEBUG" {
		t.Errorf("method of a client's own, level of a probe: %v, %v", lines[6], lines[7])
	}
}

func TestRoutes(t *testing.T) {
	for path, want := range map[string]string{
		"/": "/", "/reorder": "/reorder", "/reorder/": "other", "/v1/chat/completions": "/v1/chat/completions", "/v1/audio/speech": "/v1/*",
		"/v1/": "/v1/*",
		"/v1":  "other", "": "other", "*": "other", "/metrics/ttft": "/metrics/ttft", "/../etc/passwd": "other", "//reorder": "other",
	} {
		if got := server.Route(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}

// TestMetrics: what is counted, and that clients cannot make new series.
func TestMetrics(t *testing.T) {
	r := start(t, onFreePorts(), func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			w.WriteHeader(799)
		}
	})
	for _, path := range []string{"/reorder", "/reorder", "/v1/models", "/a", "/b", "/c", "/v1/a", "/v1/b"} {
		r.get(t, r.url+path)
	}
	// The last request is counted after its answer.
	testkit.Eventually(t, "counted", func() bool { return strings.Count(r.log.String(), "msg=request") == 8 })
	got := r.get(t, r.admin+"/metrics")
	testkit.Contains(
		t,
		"metrics",
		got.body,
		`ragpilot_http_requests_total{code="200",route="/reorder"} 2`,
		`ragpilot_http_requests_total{code="other",route="/v1/models"} 1`,
		`ragpilot_http_requests_total{code="200",route="other"} 3`,
		`ragpilot_http_requests_total{code="200",route="/v1/*"} 2`,
		`ragpilot_http_request_seconds_count{route="/reorder"} 2`,
		`ragpilot_http_request_seconds_bucket{route="/reorder",le="600"} 2`,
		"ragpilot_http_requests_in_flight 0",
		"ragpilot_http_panics_total 0",
		`ragpilot_http_auth_failures_total{reason="wrong"} 0`,
		`ragpilot_config_reloads_total{result="taken"} 0`,
		"go_goroutines",
		"# HELP ragpilot_http_requests_total ",
	)
	if n := strings.Count(got.body, "ragpilot_http_requests_total{"); n != 4 {
		t.Errorf("%d series for 4 routes", n)
	}
}

func TestRegistryOfTwoServers(t *testing.T) {
	reg := prometheus.NewRegistry()
	if _, err := server.New(onFreePorts(), http.HandlerFunc(hello), server.Options{Registry: reg}); err != nil {
		t.Fatal(err)
	}
	if _, err := server.New(onFreePorts(), http.HandlerFunc(hello), server.Options{Registry: reg}); err == nil {
		t.Error("two servers count in one place")
	}
}
