package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ragpilot/ragpilot/batch/internal/dispatch"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// status is an engine's error with that status.
func status(code int, message string) error {
	return fmt.Errorf("engine at fake: %w", &openai.StatusError{Code: code, Message: message})
}

// TestKinds: what an error leads to.
func TestKinds(t *testing.T) {
	for name, c := range map[string]struct {
		err      error
		times    int // how often the call fails; after that it is answered
		code     string
		status   int
		end      error // of the run
		attempts int
	}{
		"wrong":               {status(400, "bad member"), 1, dispatch.CodeRefused, 400, nil, 1},
		"not to be processed": {status(422, "bad member"), 1, dispatch.CodeRefused, 422, nil, 1},
		"no such page":        {status(404, "no such page"), 1, "", 0, dispatch.ErrDenied, 0},
		"too large":           {status(413, "body"), 1, dispatch.CodeTooLarge, 413, nil, 1},
		"too long":            {status(400, "This model's maximum context length is 10 tokens"), 1, dispatch.CodeTooLarge, 400, nil, 1},
		"refused":             {fmt.Errorf("%w: top_p 7", engines.ErrRefused), 1, dispatch.CodeRefused, 0, nil, 1},
		"key":                 {status(401, "bad key"), 1, "", 0, dispatch.ErrDenied, 0},
		"forbidden":           {status(403, "not yours"), 1, "", 0, dispatch.ErrDenied, 0},
		"model":               {status(404, "The model `x` does not exist."), 1, "", 0, dispatch.ErrDenied, 0},
		"busy":                {status(429, "later"), 3, "", 0, nil, 4},
		"not ready":           {status(503, "loading"), 3, "", 0, nil, 4},
		"ill":                 {status(500, "oops"), 3, "", 0, nil, 4},
		"ill for good":        {status(500, "oops"), 9, dispatch.CodeAttempts, 500, nil, 4},
		"interrupted":         {fmt.Errorf("%w: EOF", engines.ErrInterrupted), 3, "", 0, nil, 4},
		"slow":                {fmt.Errorf("%w: %w", engines.ErrUnreachable, os.ErrDeadlineExceeded), 3, "", 0, nil, 4},
		"slow for good":       {fmt.Errorf("%w: %w", engines.ErrUnreachable, os.ErrDeadlineExceeded), 4, dispatch.CodeAttempts, 0, nil, 4},
		"unreachable":         {engines.ErrUnreachable, 3, "", 0, nil, 4},
		"away":                {engines.ErrUnreachable, 4, "", 0, dispatch.ErrAway, 0},
		"busy for good":       {status(429, "later"), 4, "", 0, dispatch.ErrAway, 0},
		"something else":      {errors.New("closed"), 3, "", 0, nil, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{script: func(_ context.Context, req engines.Request, n int, _ func()) (engines.Response, error) {
					if n < c.times {
						return engines.Response{}, c.err
					}
					return answer(req), nil
				}}
				s := newStore(t)
				err := newDispatcher(t, dispatch.Config{}, f).Run(t.Context(), numbered(1), s.add)
				if !errors.Is(err, c.end) || c.end == nil && err != nil || (s.len() == 1) != (c.end == nil) {
					t.Fatalf("run: %v, want %v; %d answers", err, c.end, s.len())
				}
				if c.end != nil && !errors.Is(err, c.err) {
					t.Errorf("%v does not say why: %v", err, c.err)
				}
				if got := s.answers[0]; got.Failure.Code != c.code || got.Failure.Status != c.status || got.Attempts != c.attempts {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

// TestRetryAfter: an engine that asks for a wait gets no call before its end, whatever waits.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var early atomic.Int64
		f := &fake{script: func(_ context.Context, req engines.Request, n int, _ func()) (engines.Response, error) {
			switch since := time.Since(began); {
			case n == 0:
				return engines.Response{}, &openai.StatusError{Code: 429, RetryAfter: time.Hour}
			case since > 0 && since < time.Hour:
				early.Add(1)
			}
			return answer(req), nil
		}}
		s := newStore(t)
		if err := newDispatcher(t, dispatch.Config{Concurrency: 2}, f).Run(t.Context(), numbered(20), s.add); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < time.Hour || took > time.Hour+time.Minute || early.Load() > 0 || s.len() != 20 {
			t.Errorf("%d answers after %v, %d calls too early", s.len(), took, early.Load())
		}
	})
}

// TestDeadEngineIsNotHammered: an engine that fails every call gets few of them, and no call is marked as failed.
func TestDeadEngineIsNotHammered(t *testing.T) {
	for name, fails := range map[string]error{"unreachable": engines.ErrUnreachable, "500": status(500, "oops"), "429": status(429, "no")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{script: func(ctx context.Context, _ engines.Request, _ int, _ func()) (engines.Response, error) {
					_ = wait(ctx, time.Millisecond)
					return engines.Response{}, fails
				}}
				s := newStore(t)
				err := newDispatcher(t, dispatch.Config{}, f).Run(t.Context(), numbered(500), s.add)
				if !errors.Is(err, dispatch.ErrAway) || s.len() > 0 || len(f.texts()) > 20 {
					t.Errorf("%v, %d calls, %d answers", err, len(f.texts()), s.len())
				}
			})
		})
	}
}

// TestAnotherReplica: what a replica fails to do another does, and each call is answered once.
func TestAnotherReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		ill := &fake{script: func(ctx context.Context, req engines.Request, _ int, piece func()) (engines.Response, error) {
			if down.Load() {
				return engines.Response{}, fmt.Errorf("%w: %w", engines.ErrNotTaken, engines.ErrUnreachable)
			}
			_ = wait(ctx, time.Second)
			piece()
			return answer(req), nil
		}}
		well := takes(time.Second)
		d := newDispatcher(t, dispatch.Config{Concurrency: 4}, ill, well)
		s := newStore(t)
		time.AfterFunc(3500*time.Millisecond, func() { down.Store(true) })
		if err := d.Run(t.Context(), numbered(50), s.add); err != nil {
			t.Fatal(err)
		}
		if s.len() != 50 || len(s.failed()) > 0 || len(well.texts()) < 30 || len(ill.texts()) < 12 {
			t.Errorf("%d answers, %d failures, %d and %d calls", s.len(), len(s.failed()), len(ill.texts()), len(well.texts()))
		}
		// It works again, and gets a run once its rest is over.
		down.Store(false)
		time.Sleep(time.Minute)
		before := len(ill.texts())
		if err := d.Run(t.Context(), numbered(10), newStore(t).add); err != nil || len(ill.texts()) != before+10 {
			t.Errorf("%v, %d calls", err, len(ill.texts())-before)
		}
	})
}

// TestStoreFails: no new call begins when an answer cannot be stored, and those in flight are still given to store.
func TestStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("disk full")
		f := takes(time.Second)
		var stored atomic.Int64
		err := newDispatcher(t, dispatch.Config{Concurrency: 5}, f).Run(t.Context(), numbered(50), func(context.Context, dispatch.Answer) error {
			if stored.Add(1) == 3 {
				return full
			}
			return nil
		})
		if !errors.Is(err, full) || !strings.Contains(err.Error(), "request ") || stored.Load() != int64(len(f.texts())) || stored.Load() > 10 {
			t.Errorf("%v, %d calls, %d stored", err, len(f.texts()), stored.Load())
		}
	})
}

// TestCancelled: when the context ends, calls in flight get the grace to end, and are stored; after it they are cancelled.
func TestCancelled(t *testing.T) {
	for name, c := range map[string]struct {
		takes, grace time.Duration
		answers      int
		after        time.Duration
	}{
		"in time":  {10 * time.Second, 8 * time.Second, 3, 10 * time.Second},
		"too late": {20 * time.Second, 8 * time.Second, 0, 13 * time.Second},
		"at once":  {10 * time.Second, -1, 0, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := takes(c.takes)
				s := newStore(t)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				began := time.Now()
				err := newDispatcher(t, dispatch.Config{Concurrency: 3, Grace: c.grace}, f).Run(ctx, numbered(50), s.add)
				if !errors.Is(err, context.DeadlineExceeded) || s.len() != c.answers || len(f.texts()) != 3 || time.Since(began) != c.after {
					t.Errorf("%v after %v, %d answers, %d calls", err, time.Since(began), s.len(), len(f.texts()))
				}
			})
		})
	}
}

// TestResting: a wait that an engine asks for is reported, and bounded by an hour.
func TestResting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		f := &fake{script: func(_ context.Context, req engines.Request, n int, _ func()) (engines.Response, error) {
			if n == 0 {
				return engines.Response{}, &openai.StatusError{Code: 429, Message: "slow down", RetryAfter: 68 * 365 * 24 * time.Hour}
			}
			return answer(req), nil
		}}
		var rests []string
		d := newDispatcher(t, dispatch.Config{Concurrency: 1, Resting: func(replica string, wait time.Duration, why error) {
			rests = append(rests, fmt.Sprint(replica, " ", wait, " ", strings.Contains(why.Error(), "slow down")))
		}}, f)
		s := newStore(t)
		if err := d.Run(t.Context(), numbered(1), s.add); err != nil || s.len() != 1 || len(s.failed()) > 0 {
			t.Fatalf("%v, %d answers, failed: %v", err, s.len(), s.failed())
		}
		if want := []string{"r0 1h0m0s true"}; !slices.Equal(rests, want) {
			t.Errorf("%q, want %q", rests, want)
		}
		if took := time.Since(began); took < time.Hour || took > 2*time.Hour {
			t.Errorf("the call was sent again after %v", took)
		}
	})
}
