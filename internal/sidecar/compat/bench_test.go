package compat_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/compat"
)

// BenchmarkReorder orders one context of 15 documents with 4,096 live ones: what a client waits for before each prompt.
// Documents are as popular as words are (Zipf). The oldest context leaves with each new one.
func BenchmarkReorder(b *testing.B) {
	const live, k, distinct = 4096, 15, 20_000
	for _, kind := range []string{"integers", "strings"} {
		b.Run(kind, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			zipf := rand.NewZipf(r, 1.1, 8, distinct-1)
			body := func(n int) []byte {
				contexts := make([][]any, n)
				for i := range contexts {
					seen := map[uint64]bool{}
					for len(contexts[i]) < k {
						d := zipf.Uint64()
						if seen[d] {
							continue
						}
						seen[d] = true
						if kind == "integers" {
							contexts[i] = append(contexts[i], d)
						} else {
							contexts[i] = append(contexts[i], fmt.Sprintf("document %d says what it has to say in some forty bytes", d))
						}
					}
				}
				raw, err := json.Marshal(map[string]any{"contexts": contexts})
				if err != nil {
					b.Fatal(err)
				}
				return raw
			}
			api := compat.New(compat.Options{MaxRequests: live, Limits: compat.Fixed(live, 1_000_000)})
			post := func(body []byte) {
				w := httptest.NewRecorder()
				api.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/reorder", bytes.NewReader(body)))
				if w.Code != http.StatusOK {
					b.Fatalf("%d: %s", w.Code, w.Body)
				}
			}
			post(body(1))
			for range 2 * live {
				post(body(1))
			}
			bodies := make([][]byte, 1024)
			for i := range bodies {
				bodies[i] = body(1)
			}
			var took []time.Duration
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				start := time.Now()
				post(bodies[i%len(bodies)])
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-µs")
		})
	}
}
