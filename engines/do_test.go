package engines_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
)

func add(t testing.TB, r *engines.Router, name string, e engines.Engine) {
	t.Helper()
	if err := r.Add(name, e); err != nil {
		t.Fatal(err)
	}
}

func TestDo(t *testing.T) {
	r, pilot := newRouter(t, loose)
	add(t, r, "a", sim.New(sim.Options{}))
	add(t, r, "b", sim.New(sim.Options{}))
	pieces := ""
	req := contextpilot.Request{ID: "mine", Blocks: longDocs("x y")}
	resp, err := r.Do(t.Context(), req, ask, func(piece string) error {
		pieces += piece
		if under := r.Replicas()[0].Under + r.Replicas()[1].Under; under != 1 {
			t.Errorf("%d under way", under)
		}
		if waits := r.Replicas()[0].Pending + r.Replicas()[1].Pending; waits != 0 {
			t.Errorf("%d tokens wait after the first piece", waits)
		}
		return nil
	})
	if err != nil || resp.ID != "mine" || resp.Text == "" || pieces != resp.Text {
		t.Errorf("%+v, pieces %q: %v", resp, pieces, err)
	}
	if resp, err = r.Do(t.Context(), contextpilot.Request{Blocks: longDocs("y x")}, ask, nil); err != nil || resp.Usage.CachedTokens < 100 {
		t.Errorf("%+v: %v", resp, err)
	}
	st := pilot.Stats()
	equal(t, "plans, events, unknown", []int64{2, 2, 0}, []int64{st.Plans, st.Events, st.EventsUnknown})
}

// A replica that cannot be reached costs a second plan, for the next best, and is down from then on.
func TestDoFailsOver(t *testing.T) {
	r, _ := newRouter(t, loose)
	dead := &failing{err: fmt.Errorf("engine at a: %w", engines.ErrUnreachable)}
	add(t, r, "a", dead)
	add(t, r, "b", sim.New(sim.Options{}))
	serve(t, r, contextpilot.Request{Blocks: longDocs("x")}, "b") // a is better, then
	var plans []string
	build := func(p *contextpilot.Plan) engines.Request {
		plans = append(plans, fmt.Sprint(p.Scope.Replica, " turn ", p.Turn))
		return ask(p)
	}
	for range 2 {
		if _, err := r.Do(t.Context(), contextpilot.Request{Session: "s", Blocks: longDocs("x")}, build, nil); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "plans", []string{"a turn 1", "b turn 1", "b turn 1"}, plans)
	equal(t, "asked", 1, dead.asked)
	equal(t, "up", []bool{false, true}, []bool{r.Replicas()[0].Up, r.Replicas()[1].Up})

	dead.err = nil
	if err := r.SetUp("a", true); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Do(t.Context(), contextpilot.Request{Blocks: longDocs("q")}, build, nil); err != nil || dead.asked != 2 {
		t.Errorf("back again, asked %d times: %v", dead.asked, err)
	}
}

func TestDoAllUnreachable(t *testing.T) {
	r, pilot := newRouter(t, loose)
	last := errors.New("no route")
	for _, name := range []string{"a", "b", "c"} {
		add(t, r, name, &failing{err: fmt.Errorf("%w, %w: %w", engines.ErrUnreachable, engines.ErrNotTaken, last)})
	}
	for range 2 { // then they are known to be down
		_, err := r.Do(t.Context(), contextpilot.Request{Session: "s", Blocks: longDocs("x")}, ask, nil)
		if !errors.Is(err, engines.ErrNoReplica) {
			t.Errorf("got %v", err)
		}
		if errors.Is(err, last) != (pilot.Stats().Plans == 3) {
			t.Errorf("the last replica's error: %v", err)
		}
		pilot.Plan(contextpilot.Request{Session: "other"})
	}
	equal(t, "live, of no engine's", int64(2), pilot.Stats().LiveRequests)
}

// Which replicas are asked after which errors, which are down then, and what the caller gets.
func TestDoGoesOn(t *testing.T) {
	broke := fmt.Errorf("engine: %w: connection reset", engines.ErrUnreachable)
	slow := fmt.Errorf("engine: %w: %w", engines.ErrUnreachable, os.ErrDeadlineExceeded)
	dead := fmt.Errorf("engine: %w, %w", engines.ErrUnreachable, engines.ErrNotTaken)
	late := fmt.Errorf("engine: %w: %w", dead, os.ErrDeadlineExceeded) // its connection
	busy := fmt.Errorf("engine: %w, %w: 503", engines.ErrRefused, engines.ErrNotTaken)
	for name, c := range map[string]struct {
		errs  [4]error // of a, b, c and d: equals are asked by name
		asked string
		up    string
		want  error // nil: an answer
		not   error
	}{
		"dead ones":                       {[4]error{dead, late, dead, nil}, "abcd", "d", nil, nil},
		"a prompt that breaks engines":    {[4]error{broke, broke, broke, nil}, "ab", "cd", broke, engines.ErrNoReplica},
		"one that breaks one engine":      {[4]error{broke, nil, nil, nil}, "ab", "bcd", nil, nil},
		"others that did not take it":     {[4]error{broke, dead, busy, nil}, "abcd", "cd", nil, nil},
		"a slow one":                      {[4]error{slow, nil, nil, nil}, "a", "abcd", slow, engines.ErrNoReplica},
		"busy ones":                       {[4]error{busy, busy, busy, nil}, "abcd", "abcd", nil, nil},
		"all are busy":                    {[4]error{busy, busy, busy, busy}, "abcd", "abcd", busy, engines.ErrNoReplica},
		"all are busy or dead":            {[4]error{busy, busy, dead, dead}, "abcd", "ab", busy, engines.ErrNoReplica},
		"refused for what the request is": {[4]error{engines.ErrRefused, nil, nil, nil}, "a", "abcd", engines.ErrRefused, engines.ErrNoReplica},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newRouter(t, loose)
			for i, n := range []string{"a", "b", "c", "d"} {
				add(t, r, n, &failing{err: c.errs[i]})
			}
			asked := ""
			_, err := r.Do(t.Context(), contextpilot.Request{Blocks: longDocs("x")}, func(p *contextpilot.Plan) engines.Request {
				asked += p.Scope.Replica
				return ask(p)
			}, nil)
			if !errors.Is(err, c.want) || c.not != nil && errors.Is(err, c.not) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			up := ""
			for _, s := range r.Replicas() {
				if s.Up {
					up += s.Name
				}
				equal(t, "waiting and under way", 0, s.Pending+s.Under)
			}
			equal(t, "asked", c.asked, asked)
			equal(t, "up", c.up, up)
		})
	}
}

// Nothing is asked again once a piece has come, nor after an error that is not about the replica, nor for a caller who has gone.
func TestDoAsksOnce(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	broken, stop := errors.New("broken"), errors.New("stop")
	for name, c := range map[string]struct {
		ctx    context.Context //nolint:containedctx // of one case
		engine failing
		onText func(string) error
		want   error
	}{
		"interrupted":                 {t.Context(), failing{[]string{"a"}, engines.ErrInterrupted, 0}, nil, engines.ErrInterrupted},
		"unreachable after a piece":   {t.Context(), failing{[]string{"a"}, engines.ErrUnreachable, 0}, nil, engines.ErrUnreachable},
		"refused":                     {t.Context(), failing{nil, engines.ErrRefused, 0}, nil, engines.ErrRefused},
		"another error":               {t.Context(), failing{nil, broken, 0}, nil, broken},
		"the caller has gone":         {gone, failing{nil, engines.ErrUnreachable, 0}, nil, engines.ErrUnreachable},
		"the caller has heard enough": {t.Context(), failing{[]string{"a", "b"}, nil, 0}, func(string) error { return stop }, stop},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newRouter(t, loose)
			other := &failing{}
			add(t, r, "a", &c.engine)
			add(t, r, "b", other)
			_, err := r.Do(c.ctx, contextpilot.Request{Blocks: longDocs("x")}, ask, c.onText)
			if !errors.Is(err, c.want) || c.engine.asked != 1 || other.asked != 0 {
				t.Errorf("asked %d and %d times: %v", c.engine.asked, other.asked, err)
			}
			equal(t, "state", true, r.Replicas()[0].Up && r.Replicas()[0].Under == 0 && r.Replicas()[0].Pending == 0)
		})
	}
}

// A caller's build that panics leaves nothing behind.
func TestDoPanic(t *testing.T) {
	r, pilot := newRouter(t, loose)
	add(t, r, "a", sim.New(sim.Options{}))
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is gone")
			}
		}()
		_, _ = r.Do(t.Context(), contextpilot.Request{Blocks: longDocs("x")}, func(*contextpilot.Plan) engines.Request { panic("mine") }, nil)
	}()
	equal(t, "state", []engines.ReplicaState{{Name: "a", Up: true}}, r.Replicas())
	equal(t, "live", int64(0), pilot.Stats().LiveRequests)
}

func TestDoWithoutEngine(t *testing.T) {
	r, _ := newRouter(t, loose, "a")
	if _, err := r.Do(t.Context(), contextpilot.Request{Blocks: longDocs("x")}, ask, nil); err == nil ||
		!strings.Contains(err.Error(), `"a" has no engine`) {
		t.Errorf("got %v", err)
	}
	equal(t, "state", []engines.ReplicaState{{Name: "a", Up: true}}, r.Replicas())
}

// talkative is a fake engine that reports at once whatever it is subscribed for, holding a lock as it does.
type talkative struct {
	failing
	mu    sync.Mutex
	sinks []func(...contextpilot.Event)
}

func (f *talkative) Subscribe(sink func(...contextpilot.Event)) (cancel func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sinks = append(f.sinks, sink)
	sink(contextpilot.Event{Kind: contextpilot.Cleared})
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		sink(contextpilot.Event{Kind: contextpilot.Cleared})
	}
}

func (f *talkative) report(ev contextpilot.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sinks {
		s(ev)
	}
}

// Engines may report from within Subscribe, with locks held, and after their replica was removed.
func TestEnginesMayReportAtAnyTime(t *testing.T) {
	r, pilot := newRouter(t, loose)
	engine := &talkative{}
	add(t, r, "a", engine)
	if err := r.Add("a", engine); err == nil {
		t.Error("added twice")
	}
	rt := route(t, r, contextpilot.Request{Blocks: docs("x")})
	rt.Done(engines.Usage{}, nil)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 200 {
			engine.report(contextpilot.Event{Kind: contextpilot.Served, Request: rt.Plan.RequestID})
		}
	})
	for i := range 200 {
		add(t, r, fmt.Sprint("b", i), engine)
		if err := r.Remove(fmt.Sprint("b", i)); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	if err := r.Remove("a"); err != nil {
		t.Error(err)
	}
	add(t, r, "a", nil)
	serve(t, r, contextpilot.Request{Blocks: docs("x")})
	before := pilot.Stats().Events
	engine.report(contextpilot.Event{Kind: contextpilot.Cleared})
	engine.report(contextpilot.Event{Kind: contextpilot.Gone, Request: rt.Plan.RequestID})
	equal(t, "events of one that was removed", before, pilot.Stats().Events)
	equal(t, "what its successor has", 100, r.Scores(contextpilot.Request{Blocks: docs("x")})[0].Match.Tokens)
}
