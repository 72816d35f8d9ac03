package reqbody_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/sidecar/reqbody"
)

const wait = time.Second

func limited(to int64) *reqbody.Budget {
	return reqbody.NewBudget(func() int64 { return to }, wait)
}

// A share that finds no room gets some as soon as another is given back, and an error when its time is over.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limited(100)
		first, second := b.Open(), b.Open()
		hold(t, first, 60)
		hold(t, first, 40)
		began := time.Now()
		if err := second.Hold(t.Context(), 1); !errors.Is(err, reqbody.ErrFull) || time.Since(began) != wait {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		time.AfterFunc(wait/2, first.Release)
		began = time.Now()
		if err := second.Hold(t.Context(), 100); err != nil || time.Since(began) != wait/2 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), wait/4)
		defer cancel()
		if err := first.Hold(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a client that has gone: %v", err)
		}
		second.Release()
		second.Release()
		if b.Used() != 0 {
			t.Errorf("%d bytes are in use", b.Used())
		}
	})
}

func hold(t *testing.T, s *reqbody.Share, n int) {
	t.Helper()
	if err := s.Hold(t.Context(), n); err != nil {
		t.Fatalf("%d bytes: %v", n, err)
	}
}

// One that is alone may be larger than all may be together.
func TestAlone(t *testing.T) {
	b := limited(10)
	s := b.Open()
	hold(t, s, 8)
	hold(t, s, 100)
	s.Release()
	hold(t, b.Open(), 10)
}

// Who came first is served first, also if others have waited longer or ask for less.
func TestOldestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limited(100)
		old, young, full := b.Open(), b.Open(), b.Open()
		hold(t, old, 10)
		hold(t, young, 10)
		hold(t, full, 70)
		var all sync.WaitGroup
		began := time.Now()
		ask := func(name string, s *reqbody.Share, n int, want error, after time.Duration) {
			all.Go(func() {
				if err := s.Hold(t.Context(), n); !errors.Is(err, want) || time.Since(began) != after {
					t.Errorf("%s: %v after %v, want %v after %v", name, err, time.Since(began), want, after)
				}
			})
			synctest.Wait()
		}
		ask("young", young, 60, reqbody.ErrFull, wait)
		time.Sleep(wait / 4)
		ask("old", old, 80, nil, wait/2)   // as soon as full has ended, though young has waited longer
		ask("new", b.Open(), 5, nil, wait) // there is room for it all the time, but others were first
		time.Sleep(wait / 4)
		full.Release()
		all.Wait()
	})
}

// All have begun and none can go on: the last one is given up at once, without waiting.
func TestDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limited(100)
		shares := []*reqbody.Share{b.Open(), b.Open(), b.Open()}
		errs := make([]error, len(shares))
		began := time.Now()
		var all sync.WaitGroup
		for _, s := range shares {
			hold(t, s, 30)
		}
		for i, s := range shares {
			all.Go(func() {
				errs[i] = s.Hold(t.Context(), 40)
				s.Release()
			})
			synctest.Wait()
		}
		all.Wait()
		if errs[0] != nil || errs[1] != nil || !errors.Is(errs[2], reqbody.ErrFull) || time.Since(began) > 0 || b.Used() != 0 {
			t.Errorf("%v after %v", errs, time.Since(began))
		}
	})
}

// The limit may be changed while bodies wait.
func TestLimitChanges(t *testing.T) {
	var limit atomic.Int64
	limit.Store(10)
	b := reqbody.NewBudget(limit.Load, 0)
	s := b.Open()
	hold(t, s, 10)
	if err := b.Open().Hold(t.Context(), 5); !errors.Is(err, reqbody.ErrFull) {
		t.Errorf("error %v", err)
	}
	limit.Store(20)
	hold(t, b.Open(), 5)
}

// Many bodies that have all begun, and only some fit: never more than the limit is in use, some come to their
// end, and nothing is left behind.
func TestCrowd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		synctest.Test(&testing.T{}, func(*testing.T) {
			const limit, piece = 64, 4
			bodies := rapid.IntRange(1, 60).Draw(t, "bodies")
			pieces := rapid.IntRange(1, 16).Draw(t, "pieces")
			pause := time.Duration(rapid.IntRange(0, 50).Draw(t, "pause in ms")) * time.Millisecond
			b := limited(limit)
			var ended atomic.Int64
			var all sync.WaitGroup
			for range bodies {
				all.Go(func() {
					s := b.Open()
					defer s.Release()
					for range pieces {
						if s.Hold(context.Background(), piece) != nil {
							return
						}
						if used := b.Used(); used > limit {
							t.Errorf("%d bytes are in use", used)
						}
						time.Sleep(pause)
					}
					ended.Add(1)
				})
			}
			all.Wait()
			if b.Used() != 0 {
				t.Errorf("%d bytes are in use when all have ended", b.Used())
			}
			if fit := min(int64(bodies), limit/piece/int64(pieces)); ended.Load() < fit {
				t.Errorf("%d of %d bodies came to their end, %d fit at a time", ended.Load(), bodies, fit)
			}
		})
	})
}

// BenchmarkHold is what a body pays.
func BenchmarkHold(b *testing.B) {
	budget := limited(1 << 30)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			s := budget.Open()
			_ = s.Hold(context.Background(), 4096)
			s.Release()
		}
	})
}
