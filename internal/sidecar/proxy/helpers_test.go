package proxy_test

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/lru/budget"
	"github.com/ragpilot/ragpilot/internal/sidecar/cloudcache"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

// complete sets the options that a proxy needs, as far as a test has not.
func complete(o proxy.Options) proxy.Options {
	if o.Transport == nil {
		o.Transport = proxy.NewTransport(10*time.Second, time.Hour)
	}
	if o.Live == nil {
		o.Live = func() (bool, float64) { return false, 0 }
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Memory == nil {
		o.Memory = budget.New(0)
	}
	if o.RequestID == nil {
		o.RequestID = func(context.Context) string { return "" }
	}
	o.MaxTenants = cmp.Or(o.MaxTenants, 64)
	return o
}

// cancelled is the context of a client that has gone.
func cancelled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// postContext is post with a context.
func postContext(ctx context.Context, p http.Handler, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(body)))
	return w
}

// says sets the answers of an engine that is asked already.
func (e *engine) says(answer http.HandlerFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = answer
}

// lastHead returns the headers of the last request.
func (e *engine) lastHead() http.Header {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.heads[len(e.heads)-1]
}

// anthropicAt is Anthropic at another address, with a key of the server's own.
func anthropicAt(t *testing.T, base *url.URL) *cloudcache.Provider {
	t.Helper()
	p, err := cloudcache.New(cloudcache.Options{Provider: "anthropic", Base: base, Key: "key"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
