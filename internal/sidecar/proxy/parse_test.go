package proxy_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

// Many short messages take no large multiple of their bytes while they are planned, even if all garbage counts. Beyond so many
// messages a body is not planned at all.
func TestTinyMessagesAreParsedInPlace(t *testing.T) {
	const one = `,{"role":"user","content":"a"}`
	for name, c := range map[string]struct {
		size int
		most float64 // bytes for each
	}{"as many as are planned": {16_000 * len(one), 10}, "1 MiB": {1 << 20, 7}, "20 MiB": {20 << 20, 5}} {
		t.Run(name, func(t *testing.T) {
			p := newProxy(t, newEngine(t), func(o *proxy.Options) { o.Transport = atOnce{} })
			body := `{"model":"m","messages":[{"role":"user","content":"q"}` + strings.Repeat(one, c.size/len(one)) + `]}`
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, chatPath, strings.NewReader(body))
			w := httptest.NewRecorder()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			p.ServeHTTP(w, r)
			runtime.ReadMemStats(&after)
			if w.Code != http.StatusOK {
				t.Fatal(w.Code, w.Body)
			}
			times := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(body))
			t.Logf("%.1f bytes for each of %d", times, len(body))
			if times > c.most {
				t.Errorf("%.1f bytes for each of %d, want at most %.0f", times, len(body), c.most)
			}
		})
	}
}
