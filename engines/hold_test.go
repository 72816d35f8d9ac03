package engines_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// slow is a fake: an engine that answers in time that tests choose, and shares nothing between its slots.
type slow struct {
	engines.Engine // a simulator, for what it reports
	slots          int
	first, end     time.Duration // of an answer: its first piece, and its end after that
	err            error         // in place of an answer, after first

	mu   sync.Mutex
	sent []time.Time // when requests came
}

func newSlow() *slow {
	return &slow{Engine: sim.New(sim.Options{}), slots: 4, first: time.Second, end: time.Second}
}

func (s *slow) UnsharedSlots() int { return s.slots }

func (s *slow) Generate(ctx context.Context, req engines.Request, onText func(string) error) (engines.Response, error) {
	s.mu.Lock()
	s.sent = append(s.sent, time.Now())
	err := s.err
	s.mu.Unlock()
	if err := wait(ctx, s.first); err != nil {
		return engines.Response{}, err
	}
	if err != nil {
		return engines.Response{}, err
	}
	if err := onText("piece"); err != nil {
		return engines.Response{}, err
	}
	return engines.Response{ID: req.ID, Text: "piece"}, wait(ctx, s.end)
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// came returns how long after a time each request came.
func (s *slow) came(start time.Time) (out []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.sent {
		out = append(out, at.Sub(start))
	}
	return out
}

// long makes requests that begin with the same 2,000 tokens.
func long(p *contextpilot.Plan) engines.Request {
	return engines.Request{ID: p.RequestID, Messages: []engines.Message{
		{Role: engines.System, Content: strings.Repeat("the same words ", 600)}, {Role: engines.User, Content: p.RequestID},
	}}
}

// A request that would compute what another one computes waits for it, on the replica that has slots, and only there.
func TestDoHolds(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*engines.RouterOptions, *slow)
		want   time.Duration // when the second one is sent
	}{
		{"slots", func(*engines.RouterOptions, *slow) {}, 2 * time.Second},
		{"one slot", func(_ *engines.RouterOptions, s *slow) { s.slots = 1 }, 0},
		{"off", func(o *engines.RouterOptions, _ *slow) { o.Hold.Longest = -1 }, 0},
		{"bounded", func(o *engines.RouterOptions, _ *slow) { o.Hold.Longest = time.Second / 2 }, time.Second / 2},
		{"more tokens", func(o *engines.RouterOptions, _ *slow) { o.Hold.Tokens = 4000 }, 0},
		{"the first one fails", func(_ *engines.RouterOptions, s *slow) { s.err = engines.ErrInterrupted }, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, o := newSlow(), loose
				o.Pilot = testkit.Must(contextpilot.New(contextpilot.Config{}))(t)
				c.change(&o, e)
				r, _ := newRouter(t, o)
				add(t, r, "a", e)
				start := time.Now()
				var wg sync.WaitGroup
				for range 2 {
					wg.Go(func() { _, _ = r.Do(t.Context(), contextpilot.Request{}, long, nil) })
				}
				wg.Wait()
				equal(t, "requests come at", []time.Duration{0, c.want}, e.came(start))
				held := int64(0)
				if c.want > 0 {
					held = 1
				}
				if h := r.Replicas()[0].Hold; h.Held != held || h.Waited != c.want {
					t.Errorf("held %+v", h)
				}
			})
		})
	}
}

// Before engines with a paged cache requests are held on demand, until the first piece.
func TestDoHoldsAll(t *testing.T) {
	for all, want := range map[bool]time.Duration{false: 0, true: time.Second} {
		synctest.Test(t, func(t *testing.T) {
			e, o := newSlow(), loose
			o.Pilot, o.Hold.All = testkit.Must(contextpilot.New(contextpilot.Config{}))(t), all
			r, _ := newRouter(t, o)
			add(t, r, "a", struct{ engines.Engine }{e}) // without UnsharedSlots
			start := time.Now()
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() { _, _ = r.Do(t.Context(), contextpilot.Request{}, long, nil) })
			}
			wg.Wait()
			equal(t, "requests come at", []time.Duration{0, want}, e.came(start))
		})
	}
}

// Tenants are not held for one another: none may learn by the time of an answer what another one asks.
func TestTenantsDoNotHoldEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newSlow()
		r, _ := newRouter(t, loose)
		add(t, r, "a", e)
		start := time.Now()
		var wg sync.WaitGroup
		for _, tenant := range []string{"red", "blue"} {
			wg.Go(func() {
				_, _ = r.Do(t.Context(), contextpilot.Request{Scope: contextpilot.Scope{Tenant: tenant}}, long, nil)
			})
		}
		wg.Wait()
		equal(t, "requests come at", []time.Duration{0, 0}, e.came(start))
	})
}

// A request that is held for a replica that goes down, is removed or loses its cache is sent at once: elsewhere, if it is down.
func TestHeldWhenReplicaGoes(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*engines.Router) error
		down bool
	}{
		"down":    {func(r *engines.Router) error { return r.SetUp("a", false) }, true},
		"removed": {func(r *engines.Router) error { return r.Remove("a") }, true},
		"cleared": {func(r *engines.Router) error { return r.Observe("a", contextpilot.Event{Kind: contextpilot.Cleared}) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := newSlow(), newSlow()
				a.first = time.Minute
				r, _ := newRouter(t, loose)
				add(t, r, "a", a)
				start := time.Now()
				var wg sync.WaitGroup
				for range 2 {
					wg.Go(func() {
						if _, err := r.Do(t.Context(), contextpilot.Request{}, long, nil); err != nil {
							t.Error(err)
						}
					})
				}
				time.Sleep(3 * time.Second)
				add(t, r, "b", b)
				if err := c.do(r); err != nil {
					t.Fatal(err)
				}
				wg.Wait()
				sent := append(a.came(start), b.came(start)...)
				equal(t, "requests come at", []time.Duration{0, 3 * time.Second}, sent)
				if c.down && len(b.sent) != 1 {
					t.Error("the second was not sent to the replica that is up")
				}
				for _, s := range r.Replicas() {
					if s.Under != 0 || s.Pending != 0 {
						t.Errorf("afterwards %+v", s)
					}
				}
			})
		})
	}
}

// Without another replica the error says that none is up.
func TestHeldWhenTheOnlyReplicaGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newSlow()
		r, pilot := newRouter(t, loose)
		add(t, r, "a", a)
		errs := make(chan error)
		for range 2 {
			go func() {
				_, err := r.Do(t.Context(), contextpilot.Request{}, long, nil)
				errs <- err
			}()
		}
		synctest.Wait()
		if err := r.SetUp("a", false); err != nil {
			t.Fatal(err)
		}
		if err := <-errs; !errors.Is(err, engines.ErrNoReplica) {
			t.Errorf("error %v", err)
		}
		if err := <-errs; err != nil {
			t.Errorf("the one that was sent: %v", err)
		}
		if n := pilot.Stats().LiveRequests; n > 1 {
			t.Errorf("%d requests in the index", n)
		}
	})
}

// Whatever happens to requests and replicas, all return, and none waits longer than the bound before it is sent.
func TestDoHoldsNoLonger(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(rt, "requests")
		leaves := rapid.SliceOfN(rapid.IntRange(0, 8000), n, n).Draw(rt, "leave after, in ms")
		first, end := rapid.IntRange(0, 5000).Draw(rt, "first"), rapid.IntRange(0, 5000).Draw(rt, "end")
		downs := rapid.SliceOfN(rapid.IntRange(0, 9000), 0, 3).Draw(rt, "down at")
		fails := rapid.Bool().Draw(rt, "fails")
		synctest.Test(t, func(t *testing.T) {
			e, o := newSlow(), loose
			e.first, e.end = time.Duration(first)*time.Millisecond, time.Duration(end)*time.Millisecond
			if fails {
				e.err = engines.ErrRefused
			}
			o.Pilot = testkit.Must(contextpilot.New(contextpilot.Config{}))(t)
			o.Hold.Longest = 2 * time.Second
			r, _ := newRouter(t, o)
			add(t, r, "a", e)
			for _, ms := range downs {
				time.AfterFunc(time.Duration(ms)*time.Millisecond, func() { _ = errors.Join(r.SetUp("a", false), r.SetUp("a", true)) })
			}
			start := time.Now()
			var wg sync.WaitGroup
			for _, ms := range leaves {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(ms)*time.Millisecond)
					defer cancel()
					_, err := r.Do(ctx, contextpilot.Request{}, long, nil)
					if took := time.Since(start); took > time.Duration(ms)*time.Millisecond {
						rt.Errorf("returned %v after its context had ended: %v", took, err)
					}
				})
			}
			wg.Wait()
			time.Sleep(10 * time.Second)
			s := r.Replicas()[0]
			if s.Under != 0 || s.Pending != 0 || s.Hold.Waited > time.Duration(s.Hold.Held)*o.Hold.Longest {
				rt.Errorf("afterwards %+v", s)
			}
		})
	})
}

// An option that is wrong is named with its value.
func TestHoldOptions(t *testing.T) {
	_, err := engines.NewRouter(engines.RouterOptions{
		Pilot: testkit.Must(contextpilot.New(contextpilot.Config{}))(t), Hold: engines.HoldOptions{Tokens: -5},
	})
	if err == nil || !strings.Contains(err.Error(), "RouterOptions.Hold.Tokens -5") {
		t.Errorf("error %v", err)
	}
}
