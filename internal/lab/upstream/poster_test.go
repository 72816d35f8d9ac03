package upstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/lab/upstream"
)

// wire answers calls without a network.
type wire func(r *http.Request) (*http.Response, error)

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) { return w(r) }

func status(code int) *http.Response {
	return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader("{}"))}
}

// runPoster runs a Poster whose n-th call, from 0, is answered by answer, and returns the bodies that arrived.
func runPoster(
	t *testing.T,
	o upstream.PosterOptions,
	lost []upstream.Eviction,
	answer func(n int) (*http.Response, error),
) ([]string, upstream.PosterStats) {
	t.Helper()
	var bodies []string
	o.URL = "http://sidecar/"
	o.Client = &http.Client{Transport: wire(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || r.URL.String() != "http://sidecar/evict" {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		bodies = append(bodies, string(body))
		return answer(len(bodies) - 1)
	})}
	p := upstream.NewPoster(o)
	p.Add(lost...)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Hour, cancel)
	p.Run(ctx)
	return bodies, p.Stats()
}

func TestPoster(t *testing.T) {
	lost := func(ids ...string) (out []upstream.Eviction) {
		for _, id := range ids {
			out = append(out, upstream.Eviction{Request: id})
		}
		return out
	}
	fine := func(int) (*http.Response, error) { return status(http.StatusOK), nil }
	tests := []struct {
		name   string
		o      upstream.PosterOptions
		lost   []upstream.Eviction
		answer func(n int) (*http.Response, error)
		bodies []string
		stats  upstream.PosterStats
		logged string
	}{
		{
			"one call for all",
			upstream.PosterOptions{},
			lost("a", "b", "c"), fine,
			[]string{`{"request_ids":["a","b","c"]}`},
			upstream.PosterStats{Posted: 3, Calls: 1},
			"",
		},
		{
			"batches",
			upstream.PosterOptions{Batch: 2},
			lost("a", "b", "c"), fine,
			[]string{`{"request_ids":["a","b"]}`, `{"request_ids":["c"]}`},
			upstream.PosterStats{Posted: 3, Calls: 2},
			"",
		},
		{
			"the last word on a request counts",
			upstream.PosterOptions{},
			[]upstream.Eviction{{"a", 64}, {"b", 64}, {"a", 32}, {"b", 0}},
			fine,
			[]string{`{"request_ids":["b"],"prefixes":[{"request_id":"a","resident_tokens":32}]}`},
			upstream.PosterStats{Posted: 4, Calls: 1},
			"",
		},
		{
			"full queue",
			upstream.PosterOptions{Queue: 2},
			lost("a", "b", "c"), fine,
			[]string{`{"request_ids":["a","b"]}`},
			upstream.PosterStats{Posted: 2, Calls: 1, Overflowed: 1},
			"queue full",
		},
		{
			"sidecar not ready yet",
			upstream.PosterOptions{},
			lost("a"),
			func(n int) (*http.Response, error) {
				switch n {
				case 0:
					return nil, errors.New("refused")
				case 1:
					return status(http.StatusServiceUnavailable), nil
				}
				return status(http.StatusOK), nil
			},
			[]string{`{"request_ids":["a"]}`, `{"request_ids":["a"]}`, `{"request_ids":["a"]}`},
			upstream.PosterStats{Posted: 1, Calls: 1},
			"",
		},
		{
			"sidecar gone",
			upstream.PosterOptions{Retries: 1, Batch: 1},
			lost("a", "b"),
			func(int) (*http.Response, error) { return nil, errors.New("refused") },
			[]string{`{"request_ids":["a"]}`, `{"request_ids":["a"]}`, `{"request_ids":["b"]}`, `{"request_ids":["b"]}`},
			upstream.PosterStats{Failed: 2},
			"refused",
		},
		{
			"sidecar knows better",
			upstream.PosterOptions{},
			lost("a"),
			func(int) (*http.Response, error) { return status(http.StatusNotFound), nil },
			[]string{`{"request_ids":["a"]}`},
			upstream.PosterStats{Failed: 1},
			"status 404",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				tt.o.Log = slog.New(slog.NewTextHandler(&log, nil))
				bodies, stats := runPoster(t, tt.o, tt.lost, tt.answer)
				if diff := cmp.Diff(tt.bodies, bodies); diff != "" {
					t.Errorf("bodies (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tt.stats, stats); diff != "" {
					t.Errorf("stats (-want +got):\n%s", diff)
				}
				if tt.logged == "" != (log.Len() == 0) || !strings.Contains(log.String(), tt.logged) {
					t.Errorf("logged %q", &log)
				}
			})
		})
	}
}

// TestPosterEnds: what is queued when Run ends is still sent, unless the server does not take it.
func TestPosterEnds(t *testing.T) {
	for want, answer := range map[upstream.PosterStats]wire{
		{Posted: 3, Calls: 2}: func(*http.Request) (*http.Response, error) { return status(http.StatusOK), nil },
		{Failed: 3}: func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := upstream.NewPoster(upstream.PosterOptions{URL: "http://sidecar", Client: &http.Client{Transport: answer}, Batch: 2})
			p.Add([]upstream.Eviction{{Request: "a"}, {Request: "b"}, {Request: "c"}}...)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			begun := time.Now()
			p.Run(ctx)
			if s := p.Stats(); s != want || time.Since(begun) > 2*time.Second {
				t.Errorf("%+v after %v, want %+v", s, time.Since(begun), want)
			}
		})
	}
}

// TestEvictionsArrive: over a real connection, each request that the cache lost is posted, by the ID that it was sent with.
func TestEvictionsArrive(t *testing.T) {
	var mu sync.Mutex
	got := map[string]bool{}
	all := make(chan struct{})
	sidecar := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body struct {
			IDs []string `json:"request_ids"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, id := range body.IDs {
			if got[normal(id)] = true; len(got) == 9 {
				close(all)
			}
		}
	}))
	defer sidecar.Close()
	poster := upstream.NewPoster(upstream.PosterOptions{URL: sidecar.URL, Client: sidecar.Client()})
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { poster.Run(ctx) })
	engine := start(t, upstream.Options{CapacityTokens: 64, Tokens: 1, Evict: poster.Add, EngineIDs: true}, nil)
	for i := range 10 { // each fills the cache
		ask(t, engine, string(rune('a'+i)), strings.Repeat(string(rune('a'+i))+" ", 60), 0)
	}
	<-all
	cancel()
	group.Wait()
	if got["j"] || !got["a"] || !got["i"] {
		t.Errorf("posted %v", got)
	}
}
