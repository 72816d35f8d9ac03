package window

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// Window plans requests that arrive within a short time together: each is laid out knowing which others are about to
// follow. Worth it where requests come in bursts; a lone request waits in vain. Safe for concurrent use. It starts
// no goroutines: the first caller of a window does the work for all.
type Window struct {
	pilot *contextpilot.Pilot
	wait  time.Duration
	limit int

	mu   sync.Mutex
	open *window // nil: the next caller opens one
}

// window is a group of requests; callers and done are guarded by Window.mu until planned is closed.
type window struct {
	callers []caller
	full    chan struct{} // closed when nobody else fits
	planned chan struct{} // closed when plans are there
	done    bool
	made    bool // there are plans
}

type caller struct {
	req  contextpilot.Request
	plan contextpilot.Plan
	left bool // its context has ended
}

// errWindow is what others get if planning panics in the caller that plans for all, as only a Recorder or a clock can.
var errWindow = errors.New("window: the planning panicked in another call")

// New returns a Window that waits for others at most wait after the first request, or until there are limit.
// A few milliseconds suffice. A wait or limit of 0 or less stands for 3 ms and 64.
func New(p *contextpilot.Pilot, wait time.Duration, limit int) *Window {
	if wait <= 0 {
		wait = 3 * time.Millisecond
	}
	if limit <= 0 {
		limit = 64
	}
	return &Window{pilot: p, wait: wait, limit: limit}
}

// Plan waits for the window to close and returns what [contextpilot.Pilot.Plan] returns. If ctx ends first, its error is
// returned, and the request is not planned, or is taken back. One window is planned at a time; requests planned
// by [contextpilot.Pilot.Plan] meanwhile know what it awaits, too.
func (w *Window) Plan(ctx context.Context, req contextpilot.Request) (contextpilot.Plan, error) {
	if err := ctx.Err(); err != nil {
		return contextpilot.Plan{}, err
	}
	req.Blocks, req.Prior = slices.Clone(req.Blocks), slices.Clone(req.Prior) // the caller may be gone before the plan is made
	in, at, first := w.enter(req)
	if first {
		timer := time.NewTimer(w.wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-in.full:
		case <-ctx.Done():
			w.leave(in, at)
		}
		w.plan(in)
	}
	select {
	case <-in.planned:
	case <-ctx.Done():
		if w.leave(in, at) {
			return contextpilot.Plan{}, ctx.Err()
		}
		<-in.planned
	}
	switch {
	case in.callers[at].left:
		return contextpilot.Plan{}, ctx.Err()
	case !in.made:
		return contextpilot.Plan{}, errWindow
	}
	return in.callers[at].plan, nil
}

// enter adds the request to the open window.
func (w *Window) enter(req contextpilot.Request) (in *window, at int, first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if first = w.open == nil; first {
		w.open = &window{full: make(chan struct{}), planned: make(chan struct{})}
	}
	in = w.open
	in.callers = append(in.callers, caller{req: req})
	if len(in.callers) == w.limit {
		close(in.full)
		w.open = nil
	}
	return in, len(in.callers) - 1, first
}

// leave marks a caller whose context has ended; false: too late, there is a plan for it.
func (w *Window) leave(in *window, at int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !in.done {
		in.callers[at].left = true
	}
	return !in.done
}

// plan closes the window and plans for all who are still there. Who leaves meanwhile has its request taken back.
func (w *Window) plan(in *window) {
	defer close(in.planned)
	w.mu.Lock()
	if w.open == in {
		w.open = nil
	}
	var reqs []contextpilot.Request
	var who []int
	for i, c := range in.callers {
		if !c.left {
			reqs = append(reqs, c.req)
			who = append(who, i)
		}
	}
	w.mu.Unlock()
	defer func() { // also if a Recorder panics
		w.mu.Lock()
		defer w.mu.Unlock()
		in.done = true
	}()
	plans := w.pilot.PlanTogether(reqs)
	w.mu.Lock()
	in.done, in.made = true, true
	var gone []*contextpilot.Plan
	for k, i := range who {
		c := &in.callers[i]
		c.plan = plans[k]
		if c.left {
			gone = append(gone, &plans[k])
		}
	}
	w.mu.Unlock()
	for _, p := range gone {
		w.pilot.TakeBack(p)
	}
}
