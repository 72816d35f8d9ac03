package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/batch/internal/dispatch"
	"github.com/ragpilot/ragpilot/engines"
)

// TestOnce: whatever fails on the way, each call of runs side by side gets one answer, never two, unless its run returns an error.
func TestOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		faults := []error{
			engines.ErrUnreachable, status(429, "busy"), status(500, "oops"), fmt.Errorf("%w: cut", engines.ErrInterrupted), status(400, "wrong"),
			status(422, "wrong"),
		}
		share := rapid.IntRange(0, 40).Draw(rt, "percent of faults")
		seed := rapid.Uint64().Draw(rt, "seed")
		runs := rapid.IntRange(1, 4).Draw(rt, "runs")
		replicas := rapid.IntRange(1, 3).Draw(rt, "replicas")
		concurrency := rapid.IntRange(0, 9).Draw(rt, "concurrency")
		denied := rapid.SampledFrom([]int{-1, 0, 1, 3}).Draw(rt, "denied after")
		cancelled := rapid.SliceOfN(rapid.IntRange(0, 12), runs, runs).Draw(rt, "seconds until a run is cancelled, more than 8: never")
		texts := grow(rt, []int{0}, 3)
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			random := rand.New(rand.NewPCG(seed, 1))
			draw := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return random.IntN(n)
			}
			engine := func() engines.Engine {
				return &fake{script: func(ctx context.Context, req engines.Request, _ int, piece func()) (engines.Response, error) {
					_ = wait(ctx, time.Duration(draw(1000))*time.Millisecond)
					fails := draw(100) < share
					if draw(2) == 0 {
						piece()
					}
					if fails {
						return engines.Response{}, faults[draw(len(faults))]
					}
					_ = wait(ctx, time.Duration(draw(3000))*time.Millisecond)
					return answer(req), nil
				}}
			}
			all := make([]engines.Engine, replicas)
			for i := range all {
				all[i] = engine()
			}
			d := newDispatcher(t, dispatch.Config{Concurrency: concurrency, DeniedAfter: denied}, all...)
			var group sync.WaitGroup
			for i := range runs {
				group.Go(func() {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if c := cancelled[i]; c <= 8 {
						defer time.AfterFunc(time.Duration(c)*time.Second, cancel).Stop()
					}
					s := newStore(t)
					if err := d.Run(ctx, calls(texts...), s.add); err == nil && s.len() != len(texts) {
						t.Errorf("%d answers of %d without an error", s.len(), len(texts))
					}
				})
			}
			group.Wait()
			if s := d.Stats(); s.Runs != 0 {
				t.Errorf("runs are left: %+v", s)
			}
			for _, r := range d.Stats().Replicas {
				if r.InFlight != 0 {
					t.Errorf("calls are left: %+v", r)
				}
			}
		})
	})
}

// A context that ends while a run ends is seen by the run, or comes too late: it is no data race.
func TestInterruptedAtItsEnd(t *testing.T) {
	f := &fake{script: func(_ context.Context, req engines.Request, _ int, _ func()) (engines.Response, error) {
		return answer(req), nil
	}}
	d := newDispatcher(t, dispatch.Config{}, f)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 500 {
				ctx, cancel := context.WithCancel(t.Context())
				s := newStore(t)
				ended := make(chan error, 1)
				go func() { ended <- d.Run(ctx, numbered(1), s.add) }()
				for s.len() == 0 {
					runtime.Gosched()
				}
				cancel()
				if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

// TestLearnsConcurrency: an engine that works on capacity calls at a time, and queues the others, gets neither far fewer nor far more.
func TestLearnsConcurrency(t *testing.T) {
	for _, capacity := range []int{2, 16, 60} {
		t.Run(fmt.Sprint(capacity), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				places := make(chan struct{}, capacity)
				f := &fake{script: func(_ context.Context, req engines.Request, n int, _ func()) (engines.Response, error) {
					places <- struct{}{}
					time.Sleep(time.Second + time.Duration(n%7)*10*time.Millisecond)
					<-places
					return answer(req), nil
				}}
				began := time.Now()
				d := newDispatcher(t, dispatch.Config{}, f)
				const n = 4000
				if err := d.Run(t.Context(), numbered(n), newStore(t).add); err != nil {
					t.Fatal(err)
				}
				best := time.Duration(n/capacity) * 1030 * time.Millisecond
				limit := d.Stats().Replicas[0].Limit
				t.Logf("limit %d, most %d, %.2f of the best time", limit, f.most, float64(time.Since(began))/float64(best))
				if time.Since(began) > best*5/4 || limit > 3*capacity+8 {
					t.Errorf("limit %d for %d places; %v, best %v", limit, capacity, time.Since(began), best)
				}
			})
		})
	}
}

// longCalls are calls of 30 KB that share most of their text.
func longCalls(n int) []dispatch.Call {
	head := words(1, 2, 3, 4, 5, 6, 7, 8)
	for len(head) < 30<<10 {
		head += head
	}
	texts := make([]string, n)
	for i := range texts {
		texts[i] = head[:30<<10] + words(i/20, i)
	}
	return calls(texts...)
}

// atOnce answers everything at once.
func atOnce() *fake {
	always := answer(calls("a")[0].Request)
	return &fake{script: func(_ context.Context, _ engines.Request, _ int, piece func()) (engines.Response, error) {
		piece()
		return always, nil
	}}
}

// perCall reports what each of n calls costs that f makes, with the fake's own share.
func perCall(b *testing.B, n int, f func()) {
	b.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for b.Loop() {
		f()
	}
	runtime.ReadMemStats(&after)
	all := float64(b.N * n)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/all, "µs/call")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/all, "B/call")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/all, "allocs/call")
}

func nowhere(context.Context, dispatch.Answer) error { return nil }

// BenchmarkRun is what a dispatcher adds to calls of 30 KB that share most of their text.
func BenchmarkRun(b *testing.B) {
	for _, n := range []int{125, 500} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			all := longCalls(n)
			d := newDispatcher(b, dispatch.Config{Concurrency: 64}, atOnce())
			perCall(b, n, func() {
				if err := d.Run(b.Context(), all, nowhere); err != nil {
					b.Error(err)
				}
			})
		})
	}
}
