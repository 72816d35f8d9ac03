package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/ragpilot/ragpilot/internal/testkit"
)

// TestServeTraces: the process gets a collector from the usual variables, and sends the spans of its last request before it ends.
func TestServeTraces(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	batches := make(chan *collector.ExportTraceServiceRequest, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		batch := new(collector.ExportTraceServiceRequest)
		if err := proto.Unmarshal(text, batch); err != nil || r.Header.Get("Api-Key") != "hush" {
			t.Error(err, r.Header)
		}
		batches <- batch
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer receiver.Close()
	cmd := command(ctx, "serve", "--listen", "127.0.0.1:0", "--admin-addr", "")
	cmd.Env = append(cmd.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+receiver.URL, "OTEL_EXPORTER_OTLP_HEADERS=api-key=hush",
		"OTEL_SERVICE_NAME=rag-eu")
	pipe := started(t, cmd, cmd.StderrPipe)
	var seen strings.Builder
	lines := bufio.NewScanner(pipe)
	listening := regexp.MustCompile(`msg=listening addr=(\S+) `)
	for lines.Scan() {
		seen.WriteString(lines.Text() + "\n")
		found := listening.FindStringSubmatch(lines.Text())
		if found == nil {
			continue
		}
		res, err := http.DefaultClient.Do(mustGet(ctx, t, "http://"+found[1]+"/stats"))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		http.DefaultClient.CloseIdleConnections()
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil || strings.Contains(seen.String(), "hush") {
		t.Fatalf("%v\n%s", err, seen.String())
	}
	select {
	case batch := <-batches:
		rs := batch.GetResourceSpans()[0]
		if s := rs.GetScopeSpans()[0].GetSpans()[0]; s.GetName() != "GET /stats" || !strings.Contains(rs.GetResource().String(), `"rag-eu"`) {
			t.Errorf("%v", batch)
		}
	default:
		t.Errorf("no spans:\n%s", seen.String())
	}
}

func mustGet(ctx context.Context, t *testing.T, url string) *http.Request {
	t.Helper()
	return testkit.Must(http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody))(t)
}
