package proxy_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/diagnosis"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

// TestDiagnosisBehindAGateway: a request that a gateway forwards is looked at, too.
func TestDiagnosisBehindAGateway(t *testing.T) {
	d := new(diagnoser)
	p := newProxy(t, newEngine(t), func(o *proxy.Options) { o.Diagnosis, o.MissHeader = d, true })
	send := func(status int) http.Header {
		body := chat("s", "q")
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, chatPath, strings.NewReader(body))
		x := p.Rewrite(r, []byte(body))
		h := x.Answer(status)
		x.Ended([]byte(`{"usage":{"prompt_tokens":100,"prompt_tokens_details":{"cached_tokens":64}}}`), nil, nil)
		return h
	}
	if h := send(http.StatusOK); len(d.sent) != 1 || len(d.sent[0].Body) == 0 || d.sent[0].Sent.IsZero() || h.Get(proxy.MissHeader) == "" {
		t.Fatalf("%+v, %v", d.sent, h)
	}
	if e := d.last(); !e.Computed || e.Cached != 64 || e.Prompt != 100 {
		t.Errorf("%+v", e)
	}
	if send(http.StatusBadGateway); len(d.sent) != 1 {
		t.Error("an error was looked at")
	}
}

// BenchmarkDiagnosis is what comparing prompts adds to a request, and what it takes behind the answer. Of each pair one request goes
// through a proxy that compares and one through a proxy that does not; allocations are those of a request alone.
func BenchmarkDiagnosis(b *testing.B) {
	for _, kib := range []int{4, 32, 256} {
		for _, same := range []bool{true, false} {
			b.Run(fmt.Sprintf("KiB=%d/same=%v", kib, same), func(b *testing.B) { benchmarkDiagnosis(b, kib<<10, same) })
		}
	}
}

func benchmarkDiagnosis(b *testing.B, size int, same bool) {
	misses, err := diagnosis.New(diagnosis.Options{Bytes: 64 << 20, Share: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer misses.Close()
	e := newEngine(b)
	var ways [2]*proxy.Proxy
	for i := range ways {
		ways[i] = newProxy(b, e, func(o *proxy.Options) {
			if o.Transport = (atOnce{}); i == 1 {
				o.Diagnosis = misses
			}
		})
	}
	text := strings.Repeat("Answer from the manual alone, and name the page. ", size/49)
	body := func(i int) string {
		if same {
			return chat(text, fmt.Sprint("question ", i))
		}
		return chat(fmt.Sprintf("It is 2026-05-04 10:%02d. %s", i%60, text), fmt.Sprint("question ", i))
	}
	var took [2][]float64
	behind := time.Duration(0)
	send := func(way int, body string) {
		began := time.Now()
		post(ways[way], chatPath, "", body)
		took[way] = append(took[way], float64(time.Since(began))/1e3)
		began = time.Now()
		misses.Wait() // the next one is not slowed down by it
		behind += time.Since(began)
	}
	for i := range 20 {
		send(0, body(i))
		send(1, body(i))
	}
	took, behind = [2][]float64{}, 0
	random := rand.New(rand.NewPCG(1, 2))
	for i := 0; b.Loop(); i++ {
		raw, first := body(i), random.IntN(2) // in no fixed order: what came before warms the processor's caches
		send(first, raw)
		send(1-first, raw)
	}
	var p50 [2]float64
	for i := range took {
		slices.Sort(took[i])
		p50[i] = took[i][len(took[i])/2]
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(p50[0], "off-p50-µs")
	b.ReportMetric(p50[1], "on-p50-µs")
	b.ReportMetric(p50[1]-p50[0], "added-p50-µs")
	b.ReportMetric(float64(behind)/1e3/float64(len(took[1])), "behind-µs")
}

// BenchmarkDiagnosisAllocations is the request's own part alone: what was sent is handed over, and its answer ends.
func BenchmarkDiagnosisAllocations(b *testing.B) {
	misses, err := diagnosis.New(diagnosis.Options{Bytes: 64 << 20})
	if err != nil {
		b.Fatal(err)
	}
	_ = misses.Close() // nothing is compared
	raw, e := []byte(chat("system", "question")), proxy.Ended{ID: "a", Computed: true, Prompt: 100, Cached: 64}
	b.ReportAllocs()
	for b.Loop() {
		misses.Sent(proxy.SentPrompt{Tenant: "t", Model: "m", Session: "s", Body: raw, Sent: e.First}).Ended(e)
	}
}

// BenchmarkDiagnosisUnderLoad sends as many requests as the cores take: comparing takes its share of them, and the rest is dropped.
func BenchmarkDiagnosisUnderLoad(b *testing.B) {
	for _, share := range []float64{0, .25, 1} {
		b.Run(fmt.Sprint("share=", share), func(b *testing.B) {
			e := newEngine(b)
			var misses *diagnosis.Misses
			p := newProxy(b, e, func(o *proxy.Options) {
				if o.Transport = (atOnce{}); share == 0 {
					return
				}
				var err error
				if misses, err = diagnosis.New(diagnosis.Options{Bytes: 64 << 20, Share: share}); err != nil {
					b.Fatal(err)
				}
				o.Diagnosis = misses
			})
			text := strings.Repeat("Answer from the manual alone, and name the page. ", 32<<10/49)
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					post(p, chatPath, "", chat(text, fmt.Sprint("question ", i)))
				}
			})
			if misses != nil {
				d := misses.Data()
				b.ReportMetric(float64(d.Compared)/float64(max(d.Compared+d.Dropped, 1)), "compared")
				_ = misses.Close()
			}
		})
	}
}
