package elastic_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// gate is a fake proxy in front of a real server: it refuses wrong passwords, holds requests back, answers busy, and cuts
// answers off. What passes it passes as it is.
type gate struct {
	*httptest.Server
	calls atomic.Int64
	open  chan struct{} // closed with the test, for the requests that are held
}

type gateOptions struct {
	password string        // that requests must have; empty: any
	hold     bool          // requests get no answer
	delay    time.Duration // before each request is passed on
	busy     int64         // so many requests, the first ones, are answered with status
	status   int           // 0: 503
	page     bool          // and with a page for people, as proxies do
	cut      int64         // so many requests, the first ones, get half an answer before the connection ends
	only     string        // the faults are for requests whose path holds this
}

func newGate(t testing.TB, to string, o gateOptions) *gate {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	proxy := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:    transport,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	g := &gate{open: make(chan struct{})}
	if o.status == 0 {
		o.status = http.StatusServiceUnavailable
	}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, o.only) {
			proxy.ServeHTTP(w, r)
			return
		}
		n := g.calls.Add(1)
		if _, password, _ := r.BasicAuth(); o.password != "" && password != o.password {
			answer(w, http.StatusUnauthorized,
				`{"error":{"type":"security_exception","reason":"unable to authenticate user","root_cause":[]},"status":401}`)
			return
		}
		body, err := io.ReadAll(r.Body) // a server sees a client leave only after it has read the request
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		switch {
		case o.hold:
			select {
			case <-r.Context().Done():
			case <-g.open:
			}
		case n <= o.busy && o.page:
			answer(w, o.status, "<html>Bad gateway</html>")
		case n <= o.busy:
			answer(w, o.status, `{"error":{"type":"es_rejected_execution_exception","reason":"queue is full"},"status":429}`)
		case n <= o.cut:
			answer(w, http.StatusOK, `{"took":1,"timed_out":false,"_shards":{"total":1,"failed":0},"hits":{"hits":[{"_id":"a",`)
			panic(http.ErrAbortHandler)
		default:
			g.wait(r.Context(), o.delay)
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		close(g.open)
		g.CloseClientConnections()
		g.Close()
		transport.CloseIdleConnections()
	})
	return g
}

func (g *gate) wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-g.open:
	case <-timer.C:
	}
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Elastic-Product", "Elasticsearch")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}
