package contextpilot

import (
	"context"
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

type window struct {
	reqs  []Request
	plans []Plan
	full  chan struct{} // closed when nobody else fits
	done  chan struct{} // closed when plans are there
}

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
// returned; the request may have been planned nevertheless, as one that is not sent: report it Gone by its ID.
func (w *Window) Plan(ctx context.Context, req Request) (Plan, error) {
	if err := ctx.Err(); err != nil {
		return Plan{}, err
	}
	in, at, first := w.enter(req)
	if first {
		timer := time.NewTimer(w.wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-in.full:
		case <-ctx.Done():
		}
		w.close(in)
		in.plans = w.pilot.planTogether(in.reqs)
		close(in.done)
	}
	select {
	case <-in.done:
		return in.plans[at], ctx.Err()
	case <-ctx.Done():
		return Plan{}, ctx.Err()
	}
}

// enter adds the request to the open window.
func (w *Window) enter(req Request) (in *window, at int, first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if first = w.open == nil; first {
		w.open = &window{full: make(chan struct{}), done: make(chan struct{})}
	}
	in = w.open
	in.reqs = append(in.reqs, req)
	if len(in.reqs) == w.limit {
		close(in.full)
		w.open = nil
	}
	return in, len(in.reqs) - 1, first
}

func (w *Window) close(in *window) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == in {
		w.open = nil
	}
}

// awaiter is a Policy that can make use of knowing which requests are about to follow.
type awaiter interface{ Await(requests [][]uint64) }

// planTogether plans the requests one after the other; the policy knows the ones that follow.
func (p *Pilot) planTogether(reqs []Request) []Plan {
	plans := make([]Plan, len(reqs))
	keys := make([][]uint64, len(reqs))
	for i := range reqs {
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
	for i := range reqs {
		p.await(reqs[i].Scope, nil)
	}
	return plans
}

func (p *Pilot) await(scope Scope, next [][]uint64) {
	sc := p.scope(scope, p.cfg.Now())
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if a, ok := sc.policy.(awaiter); ok {
		_ = p.guard(stageReorder, func() error { a.Await(next); return nil })
	}
}
