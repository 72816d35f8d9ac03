package sidecar_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/lab/upstream"
	"github.com/ragpilot/ragpilot/internal/sidecar"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// TestSoak sends RAGPILOT_SOAK requests (1,000,000 in docs/load/soak.csv) of 10,000 sessions, with drift and an engine that
// evicts and reports it, and checks that memory, and what a request allocates, do not grow. RAGPILOT_SOAK_CSV names the file
// for the figures.
func TestSoak(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("RAGPILOT_SOAK"))
	if n == 0 {
		n = 4000 // shows that the test works; nothing is concluded from it
		if testing.Short() {
			n = 500
		}
	}
	const windows = 50
	s := newSoak(t)
	var out strings.Builder
	out.WriteString("requests,heap_mib,own_p50_us,own_p99_us,hit_ratio,evictions\n")
	var heap, allocated []float64
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	for range windows {
		var own []float64
		prompt, cached := 0, 0
		for range n / windows {
			took, u := s.next(t)
			own = append(own, took)
			prompt, cached = prompt+u[0], cached+u[1]
		}
		slices.Sort(own)
		before := m.TotalAlloc
		runtime.GC()
		runtime.ReadMemStats(&m)
		heap = append(heap, float64(m.HeapAlloc)/(1<<20))
		allocated = append(allocated, float64(m.TotalAlloc-before))
		fmt.Fprintf(&out, "%d,%.1f,%.0f,%.0f,%.4f,%d\n", s.sent, heap[len(heap)-1], own[len(own)/2], own[len(own)*99/100],
			float64(cached)/float64(max(prompt, 1)), s.evicted.Load())
	}
	if file := os.Getenv("RAGPILOT_SOAK_CSV"); file != "" {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Log(out.String())
	if n < 500_000 {
		return
	}
	// The bounded tables are full after 220,000 requests; behind it, neither may rise by more than a tenth.
	for name, series := range map[string][]float64{"heap": heap[windows/2:], "what is allocated": allocated[windows/2:]} {
		if rise := slope(series) * float64(len(series)) / series[len(series)/2]; rise > 0.1 {
			t.Errorf("%s rises by %.0f %% over the second half", name, 100*rise)
		}
	}
	if s.evicted.Load() == 0 {
		t.Error("nothing was evicted: the test shows nothing")
	}
}

// slope is the median of the slopes between all pairs (Theil and Sen): single slow windows do not count.
func slope(y []float64) float64 {
	var all []float64
	for i := range y {
		for j := i + 1; j < len(y); j++ {
			all = append(all, (y[j]-y[i])/float64(j-i))
		}
	}
	slices.Sort(all)
	return all[len(all)/2]
}

type soak struct {
	api      http.Handler
	engine   *upstream.Server
	upstream time.Duration // that the engine took for the request in hand
	evicted  atomic.Int64
	r        *rand.Rand
	sent     int
	turns    [10_000]int // of each session
}

func newSoak(t *testing.T) *soak {
	s := &soak{r: rand.New(rand.NewPCG(5, 5))}
	cfg := settings.Default()
	api, err := sidecar.New(cfg, sidecar.Options{Transport: s})
	if err != nil {
		t.Fatal(err)
	}
	s.api = api
	s.engine = upstream.New(upstream.Options{Tokens: 4, CapacityTokens: 400_000, Evict: s.report})
	s.post(t, "/reorder", object{"contexts": [][]int{{1, 2}, {2, 3}}}) // from now on the engine gets request IDs
	return s
}

// report passes what the engine has lost on, as an engine's hook does.
func (s *soak) report(lost ...upstream.Eviction) {
	ids := make([]string, len(lost))
	for i, l := range lost {
		ids[i] = l.Request
	}
	s.evicted.Add(int64(len(ids)))
	body, _ := json.Marshal(object{"request_ids": ids})
	w := httptest.NewRecorder()
	r, _ := http.NewRequest(http.MethodPost, "/evict", bytes.NewReader(body)) //nolint:noctx // no network
	s.api.ServeHTTP(w, r)
}

// RoundTrip hands a request to the engine without a network.
func (s *soak) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	w := httptest.NewRecorder()
	s.engine.ServeHTTP(w, r)
	s.upstream = time.Since(began)
	return w.Result(), nil
}

func (s *soak) post(t *testing.T, path string, v any) *httptest.ResponseRecorder {
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body))
	s.api.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	return w
}

// next sends the next turn of some session and returns the sidecar's own time in microseconds, and the prompt's tokens
// and those of them that were cached. Every session begins anew after four turns; topics drift.
func (s *soak) next(t *testing.T) (own float64, used [2]int) {
	n := s.r.IntN(len(s.turns))
	turn := s.turns[n] % 4
	first := s.turns[n] - turn
	s.turns[n]++
	drift := s.sent / 20_000
	topic := rand.New(rand.NewPCG(uint64(n), uint64(first))).IntN(60) + drift
	doc := func(i int) string {
		return fmt.Sprintf("<document>passage %d of topic %d says what it says</document>", i, topic)
	}
	pick := rand.New(rand.NewPCG(uint64(n), uint64(first)+1)).Perm(12)
	var docs []string
	for _, i := range pick[:6] {
		docs = append(docs, doc(i))
	}
	messages := []object{
		{"role": "system", "content": "<documents>\n" + strings.Join(docs, "\n") + "\n</documents>"},
		{"role": "user", "content": fmt.Sprintf("question %d of session %d", first, n)},
	}
	for k := range turn {
		id := fmt.Sprint("t", k)
		messages = append(
			messages,
			object{
				"role":       "assistant",
				"content":    nil,
				"tool_calls": []object{{"id": id, "type": "function", "function": object{"name": "search", "arguments": "{}"}}},
			},
			object{"role": "tool", "tool_call_id": id, "content": doc(pick[k+5]) + "\n" + doc(pick[k+6]) + "\n" + doc(pick[k+7])},
		)
	}
	body, err := json.Marshal(object{"model": "m", "messages": messages})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", bytes.NewReader(body))
	s.upstream = 0
	began := time.Now()
	s.api.ServeHTTP(w, r)
	took := time.Since(began) - s.upstream
	s.sent++
	var out usageOf
	text, err := io.ReadAll(w.Body)
	if err != nil || json.Unmarshal(text, &out) != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, text)
	}
	return float64(took.Microseconds()), [2]int{out.Usage.PromptTokens, out.Usage.Details.Cached}
}
