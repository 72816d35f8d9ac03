package load_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/lab/load"
)

type slowEngine struct {
	*sim.Engine
	first, rest time.Duration
	under, peak atomic.Int64
	calls       atomic.Int64
	failAt      int64 // call that fails; 0: none
}

func (e *slowEngine) Generate(ctx context.Context, req engines.Request, onText func(string) error) (engines.Response, error) {
	e.peak.Store(max(e.peak.Load(), e.under.Add(1)))
	defer e.under.Add(-1)
	if e.calls.Add(1) == e.failAt {
		return engines.Response{}, errFake
	}
	resp, err := e.Engine.Generate(ctx, req, onText)
	if err != nil {
		return resp, err
	}
	select {
	case <-ctx.Done():
		return resp, ctx.Err()
	case <-time.After(e.first + e.rest):
	}
	resp.TTFT, resp.Total = e.first, e.first+e.rest
	return resp, nil
}

func newSlow(j load.Job) *slowEngine {
	return &slowEngine{
		Engine: sim.New(sim.Options{Reply: load.Replies(j.Trace, 0)}), first: 50 * time.Millisecond,
		rest: 150 * time.Millisecond,
	}
}

func TestDrive(t *testing.T) {
	for _, arrivals := range []string{"poisson:10", "bursts:10,5", "closed:6"} {
		t.Run(arrivals, func(t *testing.T) {
			j := job(t, "paper", arrivals)
			j.Think = 100 * time.Millisecond
			synctest.Test(t, func(t *testing.T) {
				engine := newSlow(j)
				run, err := j.Drive(t.Context(), engine)
				if err != nil {
					t.Fatal(err)
				}
				if len(run.Sent) != len(j.Trace) || run.HitRatio() <= 0 {
					t.Errorf("%d of %d, hit ratio %f", len(run.Sent), len(j.Trace), run.HitRatio())
				}
				for _, s := range run.Sent {
					if s.TTFT != 50*time.Millisecond || s.Total != 200*time.Millisecond {
						t.Fatalf("%+v", s)
					}
				}
				if j.Arrivals.Kind == load.Closed {
					if engine.peak.Load() != 6 || run.Peak != 6 {
						t.Errorf("%d at the engine, %d counted at a time, want 6", engine.peak.Load(), run.Peak)
					}
					return
				}
				starts := j.Arrivals.Starts(120, j.Seed)
				at := map[time.Duration]bool{}
				for _, s := range run.Sent {
					at[s.Arrived] = true
				}
				for _, s := range starts {
					if !at[s] {
						t.Fatalf("no conversation began at %v", s)
					}
				}
			})
		})
	}
}

func TestDriveRace(t *testing.T) {
	for _, arrivals := range []string{"poisson:2000", "closed:16"} {
		j := job(t, "paper", arrivals)
		engine := newSlow(j)
		engine.first, engine.rest = time.Millisecond, time.Millisecond
		if _, err := j.Drive(t.Context(), engine); err != nil {
			t.Error(err)
		}
	}
}

func TestDriveEnds(t *testing.T) {
	j := job(t, "paper", "poisson:5")
	synctest.Test(t, func(t *testing.T) {
		engine := newSlow(j)
		engine.failAt = 20
		if _, err := j.Drive(t.Context(), engine); !errors.Is(err, errFake) || !strings.Contains(err.Error(), "paper") {
			t.Errorf("failure: got %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		if _, err := j.Drive(ctx, newSlow(j)); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 3*time.Second {
			t.Errorf("deadline: got %v after %v", err, time.Since(start))
		}
		for _, arrivals := range []string{"closed:4", "closed:1000"} {
			j := job(t, "paper", arrivals)
			engine := newSlow(j)
			engine.failAt = 20
			if _, err := j.Drive(t.Context(), engine); !errors.Is(err, errFake) {
				t.Errorf("%s: got %v", arrivals, err)
			}
		}
	})
}
