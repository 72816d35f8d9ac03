package contextpilot_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// together calls Plan for all requests at once, in order, and returns the plans.
func together(t *testing.T, w *contextpilot.Window, reqs []contextpilot.Request) []contextpilot.Plan {
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
	p := newPilot(t, contextpilot.Config{})
	w := contextpilot.NewWindow(p, time.Millisecond, 8)
	var reqs []contextpilot.Request
	for i := range 50 {
		reqs = append(reqs, contextpilot.Request{ID: fmt.Sprint(i), Scope: contextpilot.Scope{Model: fmt.Sprint(i % 2)}, Blocks: blocks("a", fmt.Sprint("b", i%5), "c")})
	}
	for i, plan := range together(t, w, reqs) {
		if plan.RequestID != reqs[i].ID || len(plan.Items) != 3 || plan.Fault != nil {
			t.Errorf("request %d got plan %s: %s", i, plan.RequestID, plan.Explain())
		}
	}
	equal(t, "plans", 50, int(p.Stats().Plans))
}

// Four requests share b and c, which none of them could know: planned together, they put them in front.
func TestWindowKnowsWhatFollows(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	w := contextpilot.NewWindow(p, time.Minute, 4)
	var reqs []contextpilot.Request
	for i := range 4 {
		reqs = append(reqs, contextpilot.Request{Blocks: big(fmt.Sprint("own", i), "b", fmt.Sprint("other", i), "c")})
	}
	shared := 0
	for _, plan := range together(t, w, reqs) {
		if first := plan.Block(plan.Items[0].Index).ID + plan.Block(plan.Items[1].Index).ID; first == "bc" || first == "cb" {
			shared++
		}
	}
	equal(t, "requests that begin with the blocks they share", 4, shared)
}

// A caller that gives up while it waits gets its error at once and is not planned; the others are.
func TestWindowOfACancelledCaller(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	w := contextpilot.NewWindow(p, time.Minute, 3)
	ctx, cancel := context.WithCancel(context.Background())
	first := make(chan error)
	plan := func(ctx context.Context, id string, done chan error) {
		_, err := w.Plan(ctx, contextpilot.Request{ID: id, Blocks: blocks("a")})
		done <- err
	}
	leader := make(chan error)
	go plan(context.Background(), "leader", leader)
	for w.Waiting() < 1 {
		time.Sleep(time.Millisecond)
	}
	go plan(ctx, "gone", first)
	for w.Waiting() < 2 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	last := make(chan error)
	go plan(context.Background(), "last", last) // fills the window
	if a, b := <-leader, <-last; a != nil || b != nil {
		t.Errorf("errors %v, %v", a, b)
	}
	equal(t, "plans", 2, int(p.Stats().Plans))
	if _, err := w.Plan(ctx, contextpilot.Request{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: error %v", err)
	}
}

// The first caller of a window gives up: the others do not wait for its time.
func TestWindowOfACancelledLeader(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	w := contextpilot.NewWindow(p, time.Minute, 64)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		_, err := w.Plan(ctx, contextpilot.Request{ID: "leader", Blocks: blocks("a")})
		done <- err
	}()
	for w.Waiting() < 1 {
		time.Sleep(time.Millisecond)
	}
	go func() {
		_, err := w.Plan(context.Background(), contextpilot.Request{ID: "other", Blocks: blocks("a")})
		done <- err
	}()
	for w.Waiting() < 2 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if a, b := <-done, <-done; (a == nil) == (b == nil) {
		t.Errorf("errors %v, %v: want one", a, b)
	}
	equal(t, "plans", 1, int(p.Stats().Plans))
}

// What users bring along may panic: the plan is retrieval order, and nobody waits for ever.
func TestWindowSurvivesAPanic(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Limits: contextpilot.Limits{Group: func(contextpilot.Block) (string, int) { panic("no") }}})
	w := contextpilot.NewWindow(p, time.Minute, 2)
	for _, plan := range together(t, w, []contextpilot.Request{{Blocks: blocks("b", "a")}, {Blocks: blocks("d", "c")}}) {
		if plan.Fault == nil || len(plan.Items) != 2 {
			t.Errorf("fault %v, %d items", plan.Fault, len(plan.Items))
		}
	}
}
