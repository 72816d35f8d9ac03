package contextpilot

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Window plans requests that arrive within a short time together: each is laid out knowing which others are about to
// follow. Worth it where requests come in bursts; a lone request waits in vain. Safe for concurrent use. It starts
// no goroutines: the first caller of a window does the work for all.
type Window struct {
	pilot *Pilot
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
	req  Request
	plan Plan
	left bool // its context has ended
}

// errWindow is what others get if planning panics in the caller that plans for all, as only a Recorder or a clock can.
var errWindow = errors.New("contextpilot: the window's planning panicked in another call")

// NewWindow returns a Window that waits for others at most wait after the first request, or until there are limit.
// A few milliseconds suffice. A wait or limit of 0 or less stands for 3 ms and 64.
func NewWindow(p *Pilot, wait time.Duration, limit int) *Window {
	if wait <= 0 {
		wait = 3 * time.Millisecond
	}
	if limit <= 0 {
		limit = 64
	}
	return &Window{pilot: p, wait: wait, limit: limit}
}

// Plan waits for the window to close and returns what [Pilot.Plan] returns. If ctx ends first, its error is
// returned, and the request is not planned, or is taken back. One window is planned at a time; requests planned
// by [Pilot.Plan] meanwhile know what it awaits, too.
func (w *Window) Plan(ctx context.Context, req Request) (Plan, error) {
	if err := ctx.Err(); err != nil {
		return Plan{}, err
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
			return Plan{}, ctx.Err()
		}
		<-in.planned
	}
	switch {
	case in.callers[at].left:
		return Plan{}, ctx.Err()
	case !in.made:
		return Plan{}, errWindow
	}
	return in.callers[at].plan, nil
}

// enter adds the request to the open window.
func (w *Window) enter(req Request) (in *window, at int, first bool) {
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
	var reqs []Request
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
	plans := w.pilot.planTogether(reqs)
	w.mu.Lock()
	in.done, in.made = true, true
	var gone []Event
	for k, i := range who {
		c := &in.callers[i]
		c.plan = plans[k]
		if c.left {
			gone = append(gone, Event{Kind: Gone, Scope: c.req.Scope, Request: plans[k].RequestID})
		}
	}
	w.mu.Unlock()
	w.pilot.Observe(gone...)
}

// awaiter is a Policy that can make use of knowing which requests are about to follow.
type awaiter interface{ Await(requests [][]uint64) }

// planTogether plans the requests one after the other; the policy knows the ones that follow. Only first turns are
// awaited: later ones share with nobody.
func (p *Pilot) planTogether(reqs []Request) []Plan {
	p.together.Lock()
	defer p.together.Unlock()
	plans := make([]Plan, len(reqs))
	keys := make([][]uint64, len(reqs))
	defer func() {
		for i := range reqs {
			p.await(reqs[i].Scope, nil)
		}
	}()
	for i := range reqs {
		if len(reqs[i].Prior) > 0 {
			continue
		}
		for _, x := range identify(nil, reqs[i].Blocks, p.cfg.Dedup) {
			keys[i] = append(keys[i], uint64(x.key))
		}
	}
	for i := range reqs {
		var next [][]uint64
		for j := i + 1; j < len(reqs); j++ {
			if reqs[j].Scope == reqs[i].Scope {
				next = append(next, keys[j])
			}
		}
		p.await(reqs[i].Scope, next)
		plans[i] = p.Plan(reqs[i])
	}
	return plans
}

func (p *Pilot) await(scope Scope, next [][]uint64) {
	sc := p.findScope(scope)
	if sc == nil && next != nil {
		sc = p.scope(scope, p.cfg.Now())
	}
	if sc == nil {
		return
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if a, ok := sc.policy.(awaiter); ok {
		_ = p.guard(stageReorder, func() error { a.Await(next); return nil })
	}
}
