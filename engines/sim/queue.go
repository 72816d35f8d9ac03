package sim

import (
	"context"
	"math"
	"slices"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// ticket is a request that waits until enough blocks are free. Requests are admitted in the order in which they came: a
// long prompt is not overtaken for ever by short ones.
type ticket struct {
	prompt   *prompt
	admitted chan struct{} // closed when it is its turn and the prompt has its blocks
}

// enter admits a prompt, waiting for other requests to end if there is no room. If ctx ends first, the prompt was not
// admitted, and ctx's error is returned.
func (e *Engine) enter(ctx context.Context, p *prompt) error {
	t := e.admitOrQueue(p)
	if t != nil {
		select {
		case <-t.admitted:
		case <-ctx.Done():
			e.withdraw(t)
			e.outbox.Deliver()
			return ctx.Err()
		}
	}
	e.outbox.Deliver() // what was evicted, before the first piece of the answer
	return nil
}

// admitOrQueue admits p at once, or returns its place in the queue.
func (e *Engine) admitOrQueue(p *prompt) *ticket {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p.oversize = !e.cache.fits(p); p.oversize {
		e.cache.bypass(p)
		e.stats.Oversize++
		e.count(p)
		return nil
	}
	if len(e.queue) == 0 && e.admit(p) {
		return nil
	}
	t := &ticket{prompt: p, admitted: make(chan struct{})}
	e.queue = append(e.queue, t)
	return t
}

// withdraw takes a ticket back, whether its prompt has been admitted meanwhile or not.
func (e *Engine) withdraw(t *ticket) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := slices.Index(e.queue, t); i >= 0 {
		e.queue = slices.Delete(e.queue, i, i+1)
	} else {
		e.release(t.prompt, 0, nil)
	}
	e.admitQueued() // it may have been the one that held up the others
}

// leave ends an admitted prompt after output tokens. Served is reported if the answer is complete.
func (e *Engine) leave(p *prompt, output int, complete bool) {
	e.mu.Lock()
	var events []contextpilot.Event
	if complete {
		events = append(events, contextpilot.Event{
			Kind: contextpilot.Served, Request: p.id, Tokens: p.cached(), Output: output, Prompt: p.tokens,
			CachedKnown: !p.oversize, // which did not look into the cache
		})
	}
	e.stats.OutputTokens += output
	e.release(p, output, events)
	e.admitQueued()
	e.mu.Unlock()
	e.outbox.Deliver()
}

// The methods below are called with e.mu held.

func (e *Engine) admitQueued() {
	for len(e.queue) > 0 && e.admit(e.queue[0].prompt) {
		close(e.queue[0].admitted)
		e.queue = slices.Delete(e.queue, 0, 1)
	}
}

func (e *Engine) admit(p *prompt) bool {
	events, ok := e.cache.admit(p, math.MaxInt, e.events[:0])
	e.put(events)
	if ok {
		e.count(p)
	}
	return ok
}

func (e *Engine) release(p *prompt, output int, events []contextpilot.Event) {
	e.stats.Running--
	e.put(e.cache.release(p, output, events))
}

func (e *Engine) count(p *prompt) {
	e.stats.Requests++
	e.stats.Running++
	e.stats.PromptTokens += p.tokens
	e.stats.HitTokens += p.cached()
}

// put queues events for the subscribers and keeps the slice for the next ones.
func (e *Engine) put(events []contextpilot.Event) {
	for i := range events {
		events[i].Scope = e.options.Scope
	}
	e.outbox.Put(events)
	e.events = events[:0]
}
