package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

// at once answers without a network.
type atOnce struct{}

func (atOnce) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	const text = `{"usage":{"prompt_tokens":100,"prompt_tokens_details":{"cached_tokens":64}}}`
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)), Request: r,
	}, nil
}

func passages(n, from int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("passage %d ", from+i) + strings.Repeat("what it says is of no importance here ", 13)
	}
	return out
}

// BenchmarkChat is what the proxy itself adds to a chat request: reading, planning and writing its body, and
// httputil.ReverseProxy, without any network.
func BenchmarkChat(b *testing.B) {
	for _, c := range []struct {
		name string
		body func(i int) string
	}{
		{"no documents", func(i int) string { return chat("s", fmt.Sprint("question ", i)) }},
		{"k=15 in the system text", func(i int) string { return chat("s "+docs(passages(15, 7*i%4000)...), fmt.Sprint("question ", i)) }},
		{"k=15 in a tool result", func(i int) string { return chat("s", fmt.Sprint("question ", i), docs(passages(15, 7*i%4000)...)) }},
		{"the tenth turn", func(i int) string {
			var results []string
			for turn := range 10 {
				results = append(results, docs(passages(15, 100*turn)...))
			}
			return chat("s", fmt.Sprint("question ", i%50), results...)
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			e := newEngine(b)
			p := newProxy(b, e, func(o *proxy.Options) { o.Transport = atOnce{} })
			bodies := make([]string, 2000)
			for i := range bodies {
				bodies[i] = c.body(i)
			}
			b.SetBytes(int64(len(bodies[0])))
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, chatPath, strings.NewReader(bodies[i%len(bodies)]))
				w := httptest.NewRecorder()
				if p.ServeHTTP(w, r); w.Code != http.StatusOK {
					b.Fatal(w.Code, w.Body)
				}
				i++
			}
		})
	}
}
