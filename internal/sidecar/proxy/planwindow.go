package proxy

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// planWindow plans requests that arrive within a short time together: each is ordered with knowledge of the others. That is worth it
// where requests come in bursts; a lone request waits in vain. Safe for concurrent use. It starts no goroutines: the first caller
// of a window plans for all of them.
type planWindow struct {
	pilot *contextpilot.Pilot
	wait  time.Duration
	limit int

	mu   sync.Mutex
	open *window // nil: the next caller opens one
}

// maxWindow is the number of requests at which a window closes early.
const maxWindow = 64

// window is a group of requests; callers and done are guarded by planWindow.mu until planned is closed.
type window struct {
	callers []*caller
	full    chan struct{} // closed when the window has reached its limit
	planned chan struct{} // closed when plans are there
	done    bool
	made    bool // there are plans
}

type caller struct {
	req  contextpilot.Request
	plan contextpilot.Plan
	left bool // its context has ended
}

// errWindow is returned to the other callers if planning panics in the one that plans for all, as only a Recorder or a clock can.
var errWindow = errors.New("window: the planning panicked in another call")

// Plan waits for the window to close and returns what [contextpilot.Pilot.Plan] returns. If ctx ends first, its error is
// returned, and the request is not planned, or is taken back. One window is planned at a time; requests planned
// by [contextpilot.Pilot.Plan] meanwhile know what it awaits, too.
func (w *planWindow) Plan(ctx context.Context, req contextpilot.Request) (contextpilot.Plan, error) {
	if err := ctx.Err(); err != nil {
		return contextpilot.Plan{}, err
	}
	req.Blocks, req.Prior = slices.Clone(req.Blocks), slices.Clone(req.Prior) // the caller may be gone before the plan is made
	c := &caller{req: req}
	in, first := w.enter(c)
	if first {
		timer := time.NewTimer(w.wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-in.full:
		case <-ctx.Done():
			w.leave(in, c)
		}
		w.plan(in)
	}
	select {
	case <-in.planned:
	case <-ctx.Done():
		if w.leave(in, c) {
			return contextpilot.Plan{}, ctx.Err()
		}
		<-in.planned
	}
	switch {
	case c.left:
		return contextpilot.Plan{}, ctx.Err()
	case !in.made:
		return contextpilot.Plan{}, errWindow
	}
	return c.plan, nil
}

// enter adds a caller to the open window, and reports whether it is the first one.
func (w *planWindow) enter(c *caller) (in *window, first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if first = w.open == nil; first {
		w.open = &window{full: make(chan struct{}), planned: make(chan struct{})}
	}
	in = w.open
	in.callers = append(in.callers, c)
	if len(in.callers) == w.limit {
		close(in.full)
		w.open = nil
	}
	return in, first
}

// leave marks a caller whose context has ended. It returns false if there is a plan for it already.
func (w *planWindow) leave(in *window, c *caller) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.left = c.left || !in.done
	return !in.done
}

// plan closes the window and plans for all callers that are still there. Plans of callers that leave meanwhile are taken back.
func (w *planWindow) plan(in *window) {
	defer close(in.planned)
	w.mu.Lock()
	if w.open == in {
		w.open = nil
	}
	present := slices.DeleteFunc(in.callers, func(c *caller) bool { return c.left })
	reqs := make([]contextpilot.Request, len(present))
	for i, c := range present {
		reqs[i] = c.req
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
	for i, c := range present {
		if c.plan = plans[i]; c.left {
			gone = append(gone, &plans[i])
		}
	}
	w.mu.Unlock()
	for _, p := range gone {
		w.pilot.TakeBack(p)
	}
}
