package dispatch_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ragpilot/ragpilot/batch/internal/dispatch"
	"github.com/ragpilot/ragpilot/engines"
)

// refuses answers each request after a second, with what f returns for its number.
func refuses(f func(n int) error) *fake {
	return &fake{script: func(ctx context.Context, req engines.Request, n int, piece func()) (engines.Response, error) {
		if err := wait(ctx, time.Second); err != nil {
			return engines.Response{}, err
		}
		if err := f(n); err != nil {
			return engines.Response{}, err
		}
		piece()
		return answer(req), nil
	}}
}

// TestAllRefused: what all requests have in common is wrong: that is one error, and no request is marked.
func TestAllRefused(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		least int // calls of the engine
		most  int
	}{
		"option":  {status(400, "top_k must be positive"), 20, 20 + 8},
		"member":  {status(422, "unexpected member"), 20, 20 + 8},
		"local":   {engines.ErrRefused, 20, 20 + 8},
		"address": {status(404, "Not Found"), 1, 8},
		"method":  {status(405, "Method Not Allowed"), 1, 8},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := refuses(func(int) error { return c.err })
				s := newStore(t)
				d := newDispatcher(t, dispatch.Config{}, f)
				for range 2 { // once more: it is not known that nothing has changed
					before := len(f.texts())
					err := d.Run(t.Context(), numbered(1000), s.add)
					n := len(f.texts()) - before
					if !errors.Is(err, dispatch.ErrDenied) || !errors.Is(err, c.err) || s.len() > 0 || n < c.least || n > c.most {
						t.Errorf("%v, %d calls, %d answers", err, n, s.len())
					}
				}
			})
		})
	}
}

// TestSomeRefused: what is refused is stored as refused when it is not all that is refused.
func TestSomeRefused(t *testing.T) {
	wrong := status(400, "bad")
	for name, c := range map[string]struct {
		err    func(n int) error
		config dispatch.Config
		calls  int
		failed int
	}{
		"the first are":           {func(n int) error { return map[bool]error{true: wrong}[n < 19] }, dispatch.Config{}, 200, 19},
		"all after the first":     {func(n int) error { return map[bool]error{true: wrong}[n > 0] }, dispatch.Config{}, 200, 199},
		"no page after the first": {func(n int) error { return map[bool]error{true: status(404, "none")}[n > 0] }, dispatch.Config{}, 200, 199},
		"in two ways":             {func(n int) error { return status(map[bool]int{true: 400, false: 422}[n == 18], "bad") }, dispatch.Config{}, 200, 200},
		"too long":                {func(int) error { return status(400, "the prompt is too long") }, dispatch.Config{}, 200, 200},
		"filtered":                {func(int) error { return status(400, "content_filter: violence") }, dispatch.Config{}, 200, 200},
		"few":                     {func(int) error { return wrong }, dispatch.Config{}, 19, 19},
		"few are allowed":         {func(int) error { return wrong }, dispatch.Config{DeniedAfter: 200}, 199, 199},
		"the last is filtered": {func(n int) error {
			return map[bool]error{true: status(400, "content_filter"), false: wrong}[n == 3]
		}, dispatch.Config{}, 4, 4},
		"all are to be stored":  {func(int) error { return wrong }, dispatch.Config{DeniedAfter: -1}, 200, 200},
		"no page, to be stored": {func(int) error { return status(404, "none") }, dispatch.Config{DeniedAfter: -1}, 200, 200},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t)
				c.config.Concurrency = 1
				if err := newDispatcher(t, c.config, refuses(c.err)).Run(t.Context(), numbered(c.calls), s.add); err != nil {
					t.Fatal(err)
				}
				if s.len() != c.calls || len(s.failed()) != c.failed {
					t.Errorf("%d answers, %d failures, want %d and %d", s.len(), len(s.failed()), c.calls, c.failed)
				}
				for i, failure := range s.failed() {
					if a := s.answers[i]; failure.Message == "" || a.Attempts != 1 || a.Replica != "r0" || a.Took != time.Second {
						t.Errorf("%d: %+v", i, a)
					}
				}
			})
		})
	}
}

// TestRefusedInSmallRuns: refusals count over runs, and a run whose calls are refused waits for what the others show.
func TestRefusedInSmallRuns(t *testing.T) {
	wrong := status(400, "bad")
	synctest.Test(t, func(t *testing.T) { // one after the other
		s := newStore(t)
		d := newDispatcher(t, dispatch.Config{}, refuses(func(int) error { return wrong }))
		all := numbered(40)
		for i := range 3 {
			if err := d.Run(t.Context(), all[6*i:6*i+6], s.add); err != nil || s.len() != 6*i+6 {
				t.Errorf("run %d: %v, %d answers", i, err, s.len())
			}
		}
		if err := d.Run(t.Context(), all[18:24], s.add); !errors.Is(err, dispatch.ErrDenied) || s.len() != 18 {
			t.Errorf("%v, %d answers", err, s.len())
		}
	})
	for _, works := range []bool{true, false} { // at the same time: the third run answers, or refuses too, after ten minutes
		synctest.Test(t, func(t *testing.T) {
			s := newStore(t)
			began := time.Now()
			d := newDispatcher(t, dispatch.Config{Concurrency: 50}, &fake{
				script: func(_ context.Context, req engines.Request, _ int, _ func()) (engines.Response, error) {
					if !strings.HasPrefix(last(req), "1") { // not 10 to 19
						return engines.Response{}, wrong
					}
					time.Sleep(10 * time.Minute)
					if works {
						return answer(req), nil
					}
					return engines.Response{}, wrong
				},
			})
			all := numbered(28)
			var group sync.WaitGroup
			for i := range 3 {
				group.Go(func() {
					if i < 2 {
						time.Sleep(time.Millisecond)
					}
					err := d.Run(t.Context(), all[[]int{2, 20, 10}[i]:][:8], s.add)
					if errors.Is(err, dispatch.ErrDenied) == works || works != (err == nil) || time.Since(began) != 10*time.Minute {
						t.Errorf("run %d: %v after %v", i, err, time.Since(began))
					}
				})
			}
			group.Wait()
			if want := map[bool]int{true: 24, false: 0}[works]; s.len() != want || len(s.failed()) != want/3*2 {
				t.Errorf("%d answers, %d failures, want %d", s.len(), len(s.failed()), want)
			}
		})
	}
}

// TestRefusedAndCancelled: refusals that were held back when a run ends are not stored, and come again in the next run.
func TestRefusedAndCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := refuses(func(n int) error { return map[bool]error{true: status(400, "bad")}[n < 5 || n == 10] })
		s := newStore(t)
		d := newDispatcher(t, dispatch.Config{Concurrency: 1}, f)
		ctx, cancel := context.WithTimeout(t.Context(), 4500*time.Millisecond)
		defer cancel()
		if err := d.Run(ctx, numbered(20), s.add); !errors.Is(err, context.DeadlineExceeded) || s.len() != 0 {
			t.Errorf("%v, %d answers", err, s.len())
		}
		if err := d.Run(t.Context(), numbered(20), s.add); err != nil || s.len() != 20 || len(s.failed()) != 1 {
			t.Errorf("%v, %d answers, failures %v", err, s.len(), s.failed())
		}
	})
}

// TestRefusedBesideCancelled: refusals that are held back because another run may show what they mean are stored when that run ends
// without an answer.
func TestRefusedBesideCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(t, dispatch.Config{Grace: -1}, scripted(map[string]func(context.Context) error{
			words(0): then(time.Hour, nil), words(1): then(0, status(400, "bad")), words(2): then(0, status(400, "bad")),
		}))
		var group sync.WaitGroup
		group.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := d.Run(ctx, calls(words(0)), newStore(t).add); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
		group.Go(func() {
			time.Sleep(time.Millisecond)
			began := time.Now()
			s := newStore(t)
			if err := d.Run(t.Context(), calls(words(1), words(2)), s.add); err != nil || len(s.failed()) != 2 {
				t.Errorf("%v, failures %v", err, s.failed())
			}
			if took := time.Since(began); took != time.Minute-time.Millisecond {
				t.Errorf("took %v", took)
			}
		})
		group.Wait()
	})
}

// TestRefusedElsewhere: what a replica refused that has answered nothing is asked of the replica that takes its place.
func TestRefusedElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		odd := refuses(func(n int) error {
			return map[bool]error{true: status(400, "bad"), false: engines.ErrUnreachable}[n < 5]
		})
		well := takes(time.Second)
		s := newStore(t)
		d := newDispatcher(t, dispatch.Config{Concurrency: 1}, odd, well)
		if err := d.Run(t.Context(), numbered(20), s.add); err != nil || s.len() != 20 || len(s.failed()) > 0 {
			t.Errorf("%v, %d answers, failures %v", err, s.len(), s.failed())
		}
		if len(odd.texts()) != 6 || len(well.texts()) != 20 {
			t.Errorf("%d and %d calls", len(odd.texts()), len(well.texts()))
		}
	})
}

// TestRefusedElsewhereToo: refusals of a replica that a run has left do not count any more.
func TestRefusedElsewhereToo(t *testing.T) {
	wrong := status(400, "bad")
	synctest.Test(t, func(t *testing.T) {
		odd := refuses(func(n int) error { return map[bool]error{true: wrong, false: engines.ErrUnreachable}[n < 5] })
		s := newStore(t)
		d := newDispatcher(t, dispatch.Config{Concurrency: 1, DeniedAfter: 6}, odd, refuses(func(int) error { return wrong }))
		if err := d.Run(t.Context(), numbered(6), s.add); !errors.Is(err, dispatch.ErrDenied) || s.len() > 0 {
			t.Errorf("%v, %d answers", err, s.len())
		}
	})
}

// TestRefusedAfterMove: so is what it refuses when the run has gone to another replica already.
func TestRefusedAfterMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		odd := &fake{script: func(_ context.Context, _ engines.Request, n int, _ func()) (engines.Response, error) {
			time.Sleep(time.Duration(n+1) * time.Second)
			return engines.Response{}, []error{engines.ErrUnreachable, status(400, "bad")}[n]
		}}
		s := newStore(t)
		d := newDispatcher(t, dispatch.Config{Concurrency: 2}, odd, takes(time.Second))
		if err := d.Run(t.Context(), numbered(20), s.add); err != nil || s.len() != 20 || len(s.failed()) > 0 {
			t.Errorf("%v, %d answers, failures %v", err, s.len(), s.failed())
		}
	})
}

// TestOneReplicaDenies: a replica that refuses everything is one error, though others answer.
func TestOneReplicaDenies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		odd := refuses(func(int) error { return status(400, "no such option") })
		d := newDispatcher(t, dispatch.Config{Concurrency: 1}, takes(time.Second), odd)
		var group sync.WaitGroup
		all := numbered(200)
		group.Go(func() {
			if err := d.Run(t.Context(), all[:100], s.add); err != nil {
				t.Error(err)
			}
		})
		group.Go(func() {
			time.Sleep(time.Millisecond)
			err := d.Run(t.Context(), all[100:], s.add)
			if !errors.Is(err, dispatch.ErrDenied) || !strings.Contains(err.Error(), `"r1"`) || !strings.Contains(err.Error(), "no such option") {
				t.Error(err)
			}
		})
		group.Wait()
		if s.len() != 100 || len(s.failed()) > 0 {
			t.Errorf("%d answers, failures %v", s.len(), s.failed())
		}
	})
}
