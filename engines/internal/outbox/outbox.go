// Package outbox carries engines' events to their subscribers.
package outbox

import (
	"slices"
	"sync"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// Outbox carries events from under an engine's lock to the subscribers, who are called without it: in the order in which the events
// were put in, one batch at a time. The zero Outbox has no subscribers. Its own locks are taken after the engine's.
type Outbox struct {
	delivering sync.Mutex // taken before mu
	mu         sync.Mutex
	sinks      []*sink                // guarded by mu; replaced, never changed
	waiting    [][]contextpilot.Event // guarded by mu
}

// sink is one subscription; its address identifies it.
type sink struct {
	call func(events ...contextpilot.Event)
}

// Subscribe adds a sink. After the returned function has been called, the sink gets no batch that was not already on its way.
func (o *Outbox) Subscribe(call func(events ...contextpilot.Event)) (cancel func()) {
	s := &sink{call}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sinks = append(slices.Clip(o.sinks), s)
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.sinks = slices.DeleteFunc(slices.Clone(o.sinks), func(x *sink) bool { return x == s })
	}
}

// Put adds a batch, which it copies.
func (o *Outbox) Put(events []contextpilot.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(events) > 0 && len(o.sinks) > 0 {
		o.waiting = append(o.waiting, slices.Clone(events))
	}
}

// Deliver calls the sinks with all batches put in so far; on return they have been delivered, by this goroutine or another.
func (o *Outbox) Deliver() {
	o.delivering.Lock()
	defer o.delivering.Unlock()
	for {
		o.mu.Lock()
		batches, sinks := o.waiting, o.sinks
		o.waiting = nil
		o.mu.Unlock()
		if len(batches) == 0 {
			return
		}
		for _, events := range batches {
			for _, s := range sinks {
				s.call(slices.Clone(events)...) // a sink may keep or change its slice
			}
		}
	}
}
