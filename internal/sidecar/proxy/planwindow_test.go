package proxy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// newPilot returns a pilot; its configuration is one of the test.
func newPilot(cfg contextpilot.Config) *contextpilot.Pilot {
	p, err := contextpilot.New(cfg)
	if err != nil {
		panic(err)
	}
	return p
}

func texts(ids ...string) []contextpilot.Block {
	out := make([]contextpilot.Block, len(ids))
	for i, id := range ids {
		out[i] = contextpilot.Block{ID: id, Text: "text of " + id, Tokens: 100}
	}
	return out
}

// await waits until there are n requests in the open window.
func (w *planWindow) await(n int) {
	for waiting := 0; waiting < n; time.Sleep(time.Millisecond) {
		w.mu.Lock()
		if w.open != nil {
			waiting = len(w.open.callers)
		}
		w.mu.Unlock()
	}
}

// ask plans a request in a goroutine of its own.
func (w *planWindow) ask(ctx context.Context, id string) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := w.Plan(ctx, contextpilot.Request{ID: id, Blocks: texts("a")})
		done <- err
	}()
	return done
}

// together calls Plan for all requests at once, in order, and returns the plans.
func together(t *testing.T, w *planWindow, reqs []contextpilot.Request) []contextpilot.Plan {
	t.Helper()
	plans := make([]contextpilot.Plan, len(reqs))
	var wg sync.WaitGroup
	for i, r := range reqs {
		wg.Go(func() {
			p, err := w.Plan(context.Background(), r)
			if err != nil {
				t.Error(err)
			}
			plans[i] = p
		})
	}
	wg.Wait()
	return plans
}

func TestWindowPlansEverythingOnce(t *testing.T) {
	p := newPilot(contextpilot.Config{})
	w := &planWindow{pilot: p, wait: time.Millisecond, limit: 8}
	var reqs []contextpilot.Request
	for i := range 50 {
		reqs = append(
			reqs, contextpilot.Request{
				ID: fmt.Sprint(i), Scope: contextpilot.Scope{Model: fmt.Sprint(i % 2)}, Blocks: texts("a", fmt.Sprint("b", i%5), "c"),
			},
		)
	}
	for i, plan := range together(t, w, reqs) {
		if plan.RequestID != reqs[i].ID || len(plan.Items) != 3 || plan.Fault != nil {
			t.Errorf("request %d got plan %s: %s", i, plan.RequestID, plan.Explain())
		}
	}
	if n := p.Stats().Plans; n != 50 {
		t.Errorf("%d plans", n)
	}
}

// Four requests share b and c, which none of them could know: planned together, they put them in front.
func TestWindowKnowsWhatFollows(t *testing.T) {
	p := newPilot(contextpilot.Config{})
	w := &planWindow{pilot: p, wait: time.Minute, limit: 4}
	var reqs []contextpilot.Request
	for i := range 4 {
		reqs = append(reqs, contextpilot.Request{Blocks: texts(fmt.Sprint("own", i), "b", fmt.Sprint("other", i), "c")})
	}
	shared := 0
	for _, plan := range together(t, w, reqs) {
		if first := plan.Block(plan.Items[0].Index).ID + plan.Block(plan.Items[1].Index).ID; first == "bc" || first == "cb" {
			shared++
		}
	}
	if shared != 4 {
		t.Errorf("%d requests begin with the blocks they share, want 4", shared)
	}
}

// A caller that gives up while it waits gets its error at once and is not planned; the others are.
func TestWindowOfACancelledCaller(t *testing.T) {
	p := newPilot(contextpilot.Config{})
	w := &planWindow{pilot: p, wait: time.Minute, limit: 3}
	ctx, cancel := context.WithCancel(context.Background())
	leader := w.ask(context.Background(), "leader")
	w.await(1)
	gone := w.ask(ctx, "gone")
	w.await(2)
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	last := w.ask(context.Background(), "last") // fills the window
	if a, b := <-leader, <-last; a != nil || b != nil {
		t.Errorf("errors %v, %v", a, b)
	}
	if n := p.Stats().Plans; n != 2 {
		t.Errorf("%d plans", n)
	}
	if _, err := w.Plan(ctx, contextpilot.Request{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: error %v", err)
	}
}

// The first caller of a window gives up: the others do not wait for its time.
func TestWindowOfACancelledLeader(t *testing.T) {
	p := newPilot(contextpilot.Config{})
	w := &planWindow{pilot: p, wait: time.Minute, limit: 64}
	ctx, cancel := context.WithCancel(context.Background())
	leader := w.ask(ctx, "leader")
	w.await(1)
	other := w.ask(context.Background(), "other")
	w.await(2)
	cancel()
	if a, b := <-leader, <-other; !errors.Is(a, context.Canceled) || b != nil {
		t.Errorf("the one that gave up: %v; the other: %v", a, b)
	}
	if n := p.Stats().Plans; n != 1 {
		t.Errorf("%d plans", n)
	}
}

// What users bring along may panic: the plan is retrieval order, and no caller waits for ever.
func TestWindowSurvivesAPanic(t *testing.T) {
	p := newPilot(contextpilot.Config{Limits: contextpilot.Limits{Group: func(contextpilot.Block) (string, int) { panic("no") }}})
	w := &planWindow{pilot: p, wait: time.Minute, limit: 2}
	for _, plan := range together(t, w, []contextpilot.Request{{Blocks: texts("b", "a")}, {Blocks: texts("d", "c")}}) {
		if plan.Fault == nil || len(plan.Items) != 2 {
			t.Errorf("fault %v, %d items", plan.Fault, len(plan.Items))
		}
	}
}

// panicking is a Recorder that breaks.
type panicking struct{}

func (panicking) Planned(contextpilot.Scope, *contextpilot.Plan, time.Duration) { panic("recorder") }

func (panicking) Observed(contextpilot.Event, bool) {}

// TestWindowPanics: if planning for a window panics, its other callers get an error, not an empty plan.
func TestWindowPanics(t *testing.T) {
	p := newPilot(contextpilot.Config{Recorder: panicking{}})
	w := &planWindow{pilot: p, wait: time.Hour, limit: 2}
	results := make(chan error, 2)
	for i := range 2 {
		go func() {
			defer func() {
				if r := recover(); r != nil {
					results <- nil
				}
			}()
			_, err := w.Plan(t.Context(), contextpilot.Request{ID: fmt.Sprint(i), Blocks: []contextpilot.Block{{ID: "a", Text: "a"}}})
			results <- err
		}()
	}
	if a, b := <-results, <-results; (a == nil) == (b == nil) {
		t.Errorf("%v and %v, want a panic and an error", a, b)
	}
}

// onPlan is a Recorder that is called for each plan.
type onPlan func(p *contextpilot.Plan)

func (f onPlan) Planned(_ contextpilot.Scope, p *contextpilot.Plan, _ time.Duration) { f(p) }
func (f onPlan) Observed(contextpilot.Event, bool)                                   {}

// A caller that gives up while its window is being planned: its plan is taken back, and does not count as sent.
func TestWindowOfACallerThatLeavesLate(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	gone, left := make(chan error, 1), false
	p := newPilot(contextpilot.Config{Recorder: onPlan(func(*contextpilot.Plan) {
		if cancel(); !left {
			left = true
			if err := <-gone; !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
		}
	})})
	w := &planWindow{pilot: p, wait: 20 * time.Millisecond, limit: 64}
	done := make(chan error)
	go func() {
		_, err := w.Plan(context.Background(), contextpilot.Request{ID: "leader", Blocks: texts("a")})
		done <- err
	}()
	w.await(1)
	go func() {
		_, err := w.Plan(ctx, contextpilot.Request{ID: "gone", Blocks: texts("a")})
		gone <- err
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
	st := p.Stats()
	if st.Plans != 1 || st.LiveRequests != 1 {
		t.Errorf("%d plans, %d live requests", st.Plans, st.LiveRequests)
	}
}
