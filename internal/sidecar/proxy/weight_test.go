package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/base/budget"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// What is counted is what is held: the heap grows by about as many bytes as the budget says, whatever requests are made of.
func TestWeights(t *testing.T) {
	testkit.NotUnderRace(t)
	if testing.Short() {
		t.Skip("takes 10 s")
	}
	doc := func(i, k int) string { return fmt.Sprintf("document %d of request %d", k, i) }
	many := func(i, n int) (out []string) {
		for k := range n {
			out = append(out, doc(i, k))
		}
		return out
	}
	line := func(i int) string { return fmt.Sprintf("line %d, with some words\n", i) }
	for _, c := range []struct {
		name   string
		number int
		body   func(i int) string
		header func(i int) []string
	}{
		{"tiny messages", 20_000, func(i int) string {
			return fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"%d"}]}`, i)
		}, nil},
		{"sessions", 20_000, func(int) string { return chat("s", "q") }, func(i int) []string {
			return []string{proxy.SessionHeader, fmt.Sprint("session ", i)}
		}},
		{"tool calls", 5000, func(i int) string {
			return fmt.Sprintf(
				`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"call_%d","function":{"name":"search"}}]}]}`, i,
			)
		}, nil},
		{"documents in front", 3000, func(i int) string { return chat("s "+docs(many(i, 8)...), "q") }, nil},
		{"many documents in front", 3000, func(i int) string { return chat("s "+docs(many(i, 30)...), "q") }, nil},
		{"two documents in front", 5000, func(i int) string { return chat("s "+docs(many(i, 2)...), "q") }, nil},
		{"tool results", 3000, func(i int) string { return chat("s", "q", docs(many(i, 8)...)) }, nil},
		{"later tool results", 1500, func(i int) string {
			return chat("s", fmt.Sprint(i), docs(many(i, 4)...), docs(many(-i-1, 8)...))
		}, nil},
		{"single results", 5000, func(i int) string { return chat("s", "q", strings.Repeat(fmt.Sprint("result ", i, " "), 10)) }, nil},
		{"lines", 3000, func(i int) string {
			var text strings.Builder
			for k := range 40 {
				text.WriteString(line(100*i + k))
			}
			return chat("s", text.String())
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := budget.New(1 << 30)
			// What the policy remembers of earlier requests is bounded by itself, and not counted here.
			pilot, err := contextpilot.New(contextpilot.Config{
				Dedup: contextpilot.DedupOff, Notes: contextpilot.Notes{Hint: contextpilot.HintNone}, MaxHistory: 1000,
			})
			if err != nil {
				t.Fatal(err)
			}
			p := newProxy(t, newEngine(t), func(o *proxy.Options) { o.Transport, o.Memory, o.Pilot = atOnce{}, b, pilot })
			send := func(i int) {
				var header []string
				if c.header != nil {
					header = c.header(i)
				}
				if w := post(p, chatPath, "", c.body(i), header...); w.Code != http.StatusOK {
					t.Fatal(w.Code, w.Body)
				}
			}
			send(-1) // what is made once
			first, counted := heapBytes(), b.Held("")
			for i := range c.number {
				send(i)
			}
			grown, said := heapBytes()-first, b.Held("")-counted
			ratio := float64(grown) / float64(said)
			t.Logf("%d bytes of heap and %d counted for each: %.2f", grown/int64(c.number), said/int64(c.number), ratio)
			if ratio > 1.3 || ratio < .6 { // counting too much is safe, and a map has up to half of its places free
				t.Errorf("%d bytes of heap, %d counted: %.2f; %+v", grown, said, ratio, b.Tables())
			}
			runtime.KeepAlive(p)
		})
	}
}

// heapBytes is what is reachable, once goroutines of tests before this one have ended.
func heapBytes() int64 {
	last := int64(0)
	for range 100 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // of what was waiting to be finalised
		runtime.ReadMemStats(&m)
		now := int64(m.HeapAlloc)
		if change := now - last; change < 1<<16 && change > -1<<16 {
			return now
		}
		last = now
		time.Sleep(10 * time.Millisecond)
	}
	return last
}

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
