package compat_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/compat"
)

// mixed returns n contexts that share documents all over, so that clustering them takes its time.
func mixed(seed uint64, n int) lists {
	r := rand.New(rand.NewPCG(seed, 0))
	out := make(lists, n)
	for i := range out {
		for len(out[i]) < 12 {
			out[i] = append(out[i], r.IntN(60)+100*len(out[i]))
		}
	}
	return out
}

// While large batches are clustered, by two clients at once, everything else is answered, and evictions count.
func TestNothingWaitsForClustering(t *testing.T) {
	api := compat.New(compat.Options{})
	seed := do(t, api, "/reorder", object{"contexts": lists{{1, 2, 3}, {4, 5, 6}}})
	var wg sync.WaitGroup
	done := make(chan struct{})
	for k := range 2 {
		wg.Go(func() {
			batch := mixed(uint64(k), 1200)
			for i := range batch {
				batch[i] = append(batch[i], -i-1) // nobody's match
				for j := range batch[i] {
					batch[i][j] += 10_000 * (k + 1)
				}
			}
			code, got, raw := ask(t.Context(), t, api, "", "/reorder", object{"contexts": batch})
			if code != http.StatusOK || len(got.RequestIDs) != len(batch) {
				t.Errorf("%d: %.200s", code, raw)
			}
		})
	}
	go func() {
		wg.Wait()
		close(done)
	}()
	answered, slowest := 0, time.Duration(0)
	for busy := true; busy; {
		select {
		case <-done:
			busy = false
		default:
		}
		start := time.Now()
		do(t, api, "/health", nil)
		mine := do(t, api, "/reorder", object{"contexts": lists{{1, 2, answered + 100}}})
		gone := do(t, api, "/evict", object{"request_ids": append(mine.RequestIDs, seed.RequestIDs[0])})
		if gone.Removed == 0 {
			t.Errorf("%s was not removed", mine.RequestIDs[0])
		}
		slowest = max(slowest, time.Since(start))
		answered++
	}
	t.Logf("%d rounds meanwhile, the slowest took %v", answered, slowest)
	if answered < 20 {
		t.Errorf("only %d rounds were answered while two batches were clustered", answered)
	}
}

// Many clients do everything at once; the race detector looks, each can evict what it sent, unless somebody resets, and in
// the end nothing is left.
func TestConcurrent(t *testing.T) {
	t.Run("without resets", func(t *testing.T) { concurrent(t, false) })
	t.Run("with resets", func(t *testing.T) { concurrent(t, true) })
}

func concurrent(t *testing.T, resets bool) {
	api := compat.New(compat.Options{})
	do(t, api, "/reorder", object{"contexts": mixed(1, 10)})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 7))
			for i := range 15 {
				batch := mixed(r.Uint64(), 1+r.IntN(20))
				got := do(t, api, "/reorder", object{"contexts": batch, "deduplicate": w%2 == 0})
				anyBatch := make([][]any, len(batch))
				for j, c := range batch {
					for _, d := range c {
						anyBatch[j] = append(anyBatch[j], d)
					}
				}
				lawful(t, anyBatch, got, false)
				do(t, api, "/search", object{"context": batch[0]})
				ins := do(t, api, "/insert", object{"context": batch[0], "search_path": []int{0, 1}})
				do(t, api, "/deduplicate", object{"contexts": batch, "parent_request_ids": make([]*string, len(batch))})
				api.Track("", fmt.Sprintf("mine-%d-%d", w, i))
				api.RecordTTFT("", time.Millisecond, 1)
				do(t, api, "/requests", nil)
				do(t, api, "/stats", nil)
				do(t, api, "/metrics/ttft?last=3", nil)
				gone := do(t, api, "/evict", object{"request_ids": append(got.RequestIDs, ins.RequestID)})
				if !resets && gone.Removed != len(batch)+1 {
					t.Errorf("removed %d of %d", gone.Removed, len(batch)+1)
				}
				if resets && w == 7 && i%5 == 4 {
					do(t, api, "/reset", object{})
				}
			}
		})
	}
	wg.Wait()
	left := do(t, api, "/requests", nil).RequestIDs
	check(t, "requests remaining", 0, do(t, api, "/evict", object{"request_ids": left}).RequestsRemaining)
	if s := api.Sizes(""); s.Docs != s.RootDocs {
		t.Errorf("%d documents are held, %d by the root", s.Docs, s.RootDocs)
	}
}

// A client that goes away stops the clustering, and nothing was changed.
func TestCancel(t *testing.T) {
	api := compat.New(compat.Options{})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	code, _, _ := ask(gone, t, api, "", "/reorder", object{"contexts": mixed(3, 50)})
	check(t, "status", http.StatusServiceUnavailable, code)
	check(t, "index", false, api.HasIndex(""))

	do(t, api, "/reorder", object{"contexts": lists{{-1}, {-2}}})
	before := api.Sizes("")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	start := time.Now()
	code, _, _ = ask(ctx, t, api, "", "/reorder", object{"contexts": mixed(4, 4000)})
	check(t, "status", http.StatusServiceUnavailable, code)
	check(t, "index", before.Nodes, api.Sizes("").Nodes)
	check(t, "documents", before.Docs, api.Sizes("").Docs)
	t.Logf("ended after %v", time.Since(start))

	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	code, _, _ = ask(ctx, t, api, "", "/reorder", object{"contexts": lists{{-1, 5}}})
	check(t, "a single context", http.StatusServiceUnavailable, code)
	code, _, _ = ask(ctx, t, api, "", "/schedule", object{"contexts": mixed(5, 4000)})
	check(t, "stateless", http.StatusServiceUnavailable, code)
}

// Every table has a bound, whatever clients send and never evict.
func TestBounds(t *testing.T) {
	const limit = 50
	api := compat.New(compat.Options{MaxRequests: limit, Limits: compat.Fixed(10, 1_000_000), MaxTenants: 3})
	var last reply
	for i := range 100 {
		batch := make([][]string, 5)
		for j := range batch {
			batch[j] = []string{fmt.Sprint("all", i%3), fmt.Sprint("doc", i, j), fmt.Sprint("more", i, j)}
		}
		last = do(t, api, "/reorder", object{"contexts": batch, "deduplicate": true})
		do(t, api, "/deduplicate", object{"contexts": batch, "parent_request_ids": make([]*string, 5)})
		do(t, api, "/insert", object{"context": []string{fmt.Sprint("in", i)}, "search_path": []int{}})
		do(t, api, "/search", object{"context": []string{fmt.Sprint("asked", i)}})
		api.Track("", fmt.Sprint("seen", i))
	}
	got := api.Sizes("")
	if got.Requests != limit || got.Turns != limit || got.Nodes > 4*limit || got.Docs > 3*limit || got.DocNumbers > 6*limit {
		t.Errorf("sizes %+v with a limit of %d", got, limit)
	}
	check(t, "the youngest are there", 0, len(do(t, api, "/evict", object{"request_ids": last.RequestIDs}).NotFound))
	for range compat.MaxTimes + 5 {
		api.RecordTTFT("", time.Second, 1)
	}
	api.RecordTTFT("", 3*time.Second, 1)
	times := do(t, api, "/metrics/ttft?last=2", nil)
	check(t, "times", compat.MaxTimes, api.Sizes("").Times)
	check(t, "the last ones", []float64{1000, 3000}, times.TTFT)
	check(t, "mean", 2000.0, times.Avg)
	check(t, "characters", compat.MaxTimes+6, times.CharsSaved)
	for i := range 20 {
		name := fmt.Sprint("t", i)
		ask(t.Context(), t, api, name, "/reorder", object{"contexts": lists{{1}}})
		ask(t.Context(), t, api, name+"'", "/stats", nil)
	}
	check(t, "tenants", 3, api.Tenants())
}

// One tenant sees nothing of another.
func TestTenants(t *testing.T) {
	var resets []string
	api := compat.New(compat.Options{OnReset: func(name string) { resets = append(resets, name) }})
	as := func(name, path string, body any) (int, reply) {
		code, out, _ := ask(t.Context(), t, api, name, path, body)
		return code, out
	}
	batch := object{"contexts": lists{{1, 2, 3}, {1, 2, 4}}, "deduplicate": true}
	_, a := as("a", "/reorder", batch)
	code, _ := as("b", "/stats", nil)
	check(t, "b has no index", http.StatusServiceUnavailable, code)
	_, b := as("b", "/reorder", batch)
	check(t, "b's first batch", "initial", b.Mode)
	_, gone := as("b", "/evict", object{"request_ids": a.RequestIDs})
	check(t, "b cannot evict a's", a.RequestIDs, gone.NotFound)
	_, turn := as("b", "/reorder", object{"contexts": lists{{1}}, "deduplicate": true, "parent_request_ids": a.RequestIDs[:1]})
	check(t, "b cannot continue a's conversation", 0, len(turn.Deduplication.Results[0].Overlapping))
	api.RecordTTFT("a", time.Second, 5)
	_, times := as("b", "/metrics/ttft", nil)
	check(t, "b's times", 0, times.Count)
	as("b", "/reset", object{})
	check(t, "a keeps its index", true, api.HasIndex("a"))
	_, left := as("a", "/requests", nil)
	check(t, "a's requests", a.RequestIDs, left.RequestIDs)
	check(t, "resets", []string{"b"}, resets)
}

// Evictions are passed on, also before there is an index here: the proxy has one of its own.
func TestEvictionsArePassedOn(t *testing.T) {
	var got []string
	api := compat.New(compat.Options{OnEvict: func(_ string, ids []string) { got = append(got, ids...) }})
	w := httptest.NewRecorder()
	api.ServeHTTP(
		w,
		httptest.NewRequestWithContext(
			t.Context(),
			http.MethodPost,
			"/evict",
			strings.NewReader(`{"request_ids":["chatcmpl-a","HEALTH_CHECK_1","a"]}`),
		),
	)
	check(t, "status", http.StatusServiceUnavailable, w.Code)
	check(t, "IDs", []string{"a"}, got)
}
