package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/batch/internal/dispatch"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
)

// TestRunsBesideEachOther: several runs on one replica compute no more than their calls would one after the other, wherever the calls
// were split into runs, and whenever the runs start.
func TestRunsBesideEachOther(t *testing.T) {
	alone := 0
	rapid.Check(t, func(rt *rapid.T) {
		texts := grow(rt, []int{0}, 4)
		concurrency := rapid.IntRange(1, 40).Draw(rt, "concurrency")
		runs := rapid.IntRange(2, 5).Draw(rt, "runs")
		starts := make([]time.Duration, runs)
		cuts := []int{0, len(texts)}
		for i := range starts {
			starts[i] = time.Duration(rapid.IntRange(0, 8).Draw(rt, "starts")) * 500 * time.Millisecond
			if i > 0 {
				starts[i] = max(starts[i], starts[i-1])
				cuts = append(cuts, rapid.IntRange(0, len(texts)).Draw(rt, "cut"))
			}
		}
		slices.Sort(cuts)
		one := sim.New(sim.Options{})
		for _, c := range calls(texts...) {
			if _, err := one.Generate(t.Context(), c.Request, nil); err != nil {
				rt.Fatal(err)
			}
		}
		compute := func(spread bool) int64 {
			e := newSlow()
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t)
				d := newDispatcher(t, dispatch.Config{Concurrency: concurrency, MinShared: 1}, e)
				other := newDispatcher(t, dispatch.Config{Concurrency: concurrency, MinShared: 1}, e)
				var group sync.WaitGroup
				all := calls(texts...)
				for i, start := range starts {
					group.Go(func() {
						time.Sleep(start)
						by := d
						if spread && i%2 == 1 {
							by = other
						}
						if err := by.Run(t.Context(), all[cuts[i]:cuts[i+1]], s.add); err != nil {
							t.Error(err)
						}
					})
				}
				group.Wait()
				if s.len() != len(texts) || len(s.failed()) > 0 {
					t.Errorf("%d answers of %d, failures %v", s.len(), len(texts), s.failed())
				}
			})
			return e.computed.Load()
		}
		want := int64(one.Stats().PromptTokens - one.Stats().HitTokens)
		if got := compute(false); got != want {
			rt.Fatalf("%d tokens computed, want %d", got, want)
		}
		if compute(true) > want {
			alone++
		}
	})
	if alone == 0 {
		t.Error("runs that know nothing of each other compute as little")
	}
}

// begins answers after ten minutes, and begins to after a second.
func begins() *fake {
	return &fake{script: func(ctx context.Context, req engines.Request, _ int, piece func()) (engines.Response, error) {
		_ = wait(ctx, time.Second)
		piece()
		_ = wait(ctx, 10*time.Minute)
		return answer(req), nil
	}}
}

// TestWaitsBeside: a run waits for what it shares with a call that has not begun, and for nothing else.
func TestWaitsBeside(t *testing.T) {
	type start struct {
		at    time.Duration
		texts []string
	}
	single := make([]start, 20)
	for i := range single {
		single[i] = start{time.Duration(i) * 10 * time.Millisecond, []string{words(0, i)}}
	}
	for name, c := range map[string]struct {
		runs   []start
		shared int
		began  []time.Duration // of calls, in order
	}{
		"the same head": {
			[]start{{0, []string{words(0, 1)}}, {0, []string{words(0, 2)}}}, 0, []time.Duration{0, time.Second},
		},
		"nothing in common": {
			[]start{{0, []string{words(0, 1)}}, {0, []string{words(1, 1)}}}, 0, []time.Duration{0, 0},
		},
		"too little": {
			[]start{{0, []string{words(0, 1)}}, {0, []string{words(0, 2)}}}, 1000, []time.Duration{0, 0},
		},
		"no call waits": {
			[]start{{0, []string{words(0, 1)}}, {0, []string{words(0, 2)}}}, -1, []time.Duration{0, 0},
		},
		"it has begun": {
			[]start{{0, []string{words(0, 1)}}, {2 * time.Second, []string{words(0, 2)}}}, 0, []time.Duration{0, 2 * time.Second},
		},
		"the head has begun, and another call with it has not": {
			[]start{
				{0, []string{words(0, 1)}}, {2 * time.Second, []string{words(0, 2)}}, {2500 * time.Millisecond, []string{words(0, 3)}},
			}, 0, []time.Duration{0, 2 * time.Second, 2500 * time.Millisecond},
		},
		"the head has begun, and what follows it has not": {
			[]start{
				{0, []string{words(0, 1)}}, {2 * time.Second, []string{words(0, 2, 1)}}, {2500 * time.Millisecond, []string{words(0, 2, 2)}},
			}, 0, []time.Duration{0, 2 * time.Second, 3 * time.Second},
		},
		"runs with trunks": {
			[]start{
				{0, []string{words(0, 1, 1), words(0, 1, 2)}}, {0, []string{words(0, 2, 1), words(0, 2, 2)}},
			}, 0, []time.Duration{0, time.Second, time.Second, 2 * time.Second},
		},
		"many runs of one call": {single, 0, append([]time.Duration{0}, slices.Repeat([]time.Duration{time.Second}, 19)...)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				f := begins()
				d := newDispatcher(t, dispatch.Config{MinShared: c.shared, Concurrency: 100}, f)
				var group sync.WaitGroup
				for _, r := range c.runs {
					group.Go(func() {
						time.Sleep(r.at)
						if err := d.Run(t.Context(), calls(r.texts...), newStore(t).add); err != nil {
							t.Error(err)
						}
					})
				}
				group.Wait()
				if got := f.since(began); !slices.Equal(got, c.began) {
					t.Errorf("calls began at %v, want %v", got, c.began)
				}
			})
		})
	}
}

// TestBesideOnOtherReplicas: replicas share no cache, so runs on different ones do not wait for each other.
func TestBesideOnOtherReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		a, b := begins(), begins()
		d := newDispatcher(t, dispatch.Config{}, a, b)
		var group sync.WaitGroup
		for i := range 2 {
			group.Go(func() {
				if err := d.Run(t.Context(), calls(words(0, i)), newStore(t).add); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if a, b := a.since(began), b.since(began); len(a) != 1 || len(b) != 1 || a[0]+b[0] != 0 {
			t.Errorf("calls began at %v and %v", a, b)
		}
	})
}

// TestBesideFailure: a call that waits for one of another run goes on when that fails, whatever becomes of it, and its own run can end
// while it waits.
func TestBesideFailure(t *testing.T) {
	for name, fails := range map[string]error{
		"refused": status(400, "wrong"), "ill": status(500, "oops"), "busy": status(429, "later"), "away": engines.ErrUnreachable,
		"denied": status(401, "no key"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var once atomic.Bool
				f := &fake{script: func(_ context.Context, req engines.Request, _ int, _ func()) (engines.Response, error) {
					time.Sleep(time.Second)
					if once.CompareAndSwap(false, true) {
						return engines.Response{}, fails
					}
					return answer(req), nil
				}}
				d := newDispatcher(t, dispatch.Config{}, f)
				var group sync.WaitGroup
				group.Go(func() {
					err := d.Run(t.Context(), calls(words(0, 1)), newStore(t).add)
					if denied := errors.Is(err, dispatch.ErrDenied); denied != (name == "denied") || !denied && err != nil {
						t.Error(err)
					}
				})
				group.Go(func() {
					time.Sleep(time.Millisecond)
					s := newStore(t)
					if err := d.Run(t.Context(), calls(words(0, 2)), s.add); err != nil || s.len() != 1 || len(s.failed()) > 0 {
						t.Errorf("%v, %d answers", err, s.len())
					}
				})
				group.Go(func() { // it is cancelled while it waits
					time.Sleep(time.Millisecond)
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
					defer cancel()
					start := time.Now()
					if err := d.Run(ctx, calls(words(0, 3)), newStore(t).add); !errors.Is(err, context.DeadlineExceeded) ||
						time.Since(start) != 10*time.Millisecond {
						t.Errorf("%v after %v", err, time.Since(start))
					}
				})
				group.Wait()
			})
		})
	}
}

// scripted answers each text with what the script says, after a second if it says nothing.
func scripted(script map[string]func(context.Context) error) *fake {
	return &fake{script: func(ctx context.Context, req engines.Request, _ int, _ func()) (engines.Response, error) {
		f := script[last(req)]
		if f == nil {
			f = func(ctx context.Context) error { return wait(ctx, time.Second) }
		}
		if err := f(ctx); err != nil {
			return engines.Response{}, err
		}
		return answer(req), nil
	}}
}

// then waits, and returns an error.
func then(d time.Duration, err error) func(context.Context) error {
	return func(ctx context.Context) error { return errors.Join(wait(ctx, d), err) }
}

// besides runs several runs, each after a start, and fails the test if one returns an error.
func besides(t *testing.T, d *dispatch.Dispatcher, runs map[time.Duration][]string) {
	t.Helper()
	var group sync.WaitGroup
	for start, texts := range runs {
		group.Go(func() {
			time.Sleep(start)
			if err := d.Run(t.Context(), calls(texts...), newStore(t).add); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// TestBesideRefused: what a call was to compute that is refused, is not computed: of those that waited one goes first again.
func TestBesideRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		f := scripted(map[string]func(context.Context) error{words(0, 1): then(time.Second, status(400, "wrong"))})
		besides(t, newDispatcher(t, dispatch.Config{}, f), map[time.Duration][]string{0: {words(0, 1)}, 1: {words(0, 2)}, 2: {words(0, 3)}})
		if got, want := f.since(began), []time.Duration{0, time.Second, 2 * time.Second}; !slices.Equal(got, want) {
			t.Errorf("calls began at %v, want %v", got, want)
		}
	})
}

// TestBesideMoved: on another replica a run waits for nothing that is in flight on the one it has left, and what stays behind there keeps
// no other run waiting.
func TestBesideMoved(t *testing.T) {
	hang, gone := then(5*time.Minute, nil), then(time.Second, engines.ErrUnreachable)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		other := takes(time.Second)
		odd := scripted(map[string]func(context.Context) error{words(0, 1): hang, words(5): gone})
		d := newDispatcher(t, dispatch.Config{}, other, odd)
		besides(t, d, map[time.Duration][]string{
			0: {words(6), words(7), words(8), words(9)}, // for the other one
			1: {words(0, 1)}, 2: {words(0, 2), words(5)},
		})
		if got := other.since(began); len(got) != 6 || got[5] > 2*time.Second {
			t.Errorf("calls of the other began at %v", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		odd := scripted(map[string]func(context.Context) error{words(0, 1): hang, words(5): gone})
		other := takes(time.Second)
		d := newDispatcher(t, dispatch.Config{RetryWait: time.Minute}, odd, other)
		besides(t, d, map[time.Duration][]string{0: {words(0, 1), words(5)}, 2 * time.Second: {words(0, 2)}})
		if got := other.since(began); len(got) != 2 || got[1] != 2*time.Second {
			t.Errorf("calls of the other began at %v", got)
		}
	})
}

// TestBesideComputedBefore: what calls have computed that have ended since keeps no call of their run waiting.
func TestBesideComputedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		f := scripted(map[string]func(context.Context) error{words(0, 4): then(700*time.Millisecond, status(400, "wrong"))})
		besides(t, newDispatcher(t, dispatch.Config{Concurrency: 3}, f), map[time.Duration][]string{
			0:                       {words(0, 1), words(0, 2), words(0, 3), words(0, 4), words(0, 5)},
			1600 * time.Millisecond: {words(1)},
		})
		want := []time.Duration{0, time.Second, time.Second, time.Second, 1700 * time.Millisecond, 2 * time.Second}
		if got := f.since(began); !slices.Equal(got, want) || f.texts()[4] != words(0, 5) {
			t.Errorf("calls began at %v, want %v; the fifth is %.20q", got, want, f.texts()[4])
		}
	})
}

// BenchmarkBeside is what several runs on one replica cost for each call.
func BenchmarkBeside(b *testing.B) {
	for _, runs := range []int{1, 8} {
		b.Run(fmt.Sprint(runs), func(b *testing.B) {
			all := longCalls(512)
			d := newDispatcher(b, dispatch.Config{Concurrency: 64}, atOnce())
			perCall(b, len(all), func() {
				var group sync.WaitGroup
				for i := range runs {
					group.Go(func() {
						n := len(all) / runs
						if err := d.Run(b.Context(), all[i*n:i*n+n], nowhere); err != nil {
							b.Error(err)
						}
					})
				}
				group.Wait()
			})
		})
	}
}
