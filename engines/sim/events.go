package sim

import (
	"slices"
	"sync"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// sink is one subscription; its address identifies it.
type sink struct {
	call func(events ...contextpilot.Event)
}

// outbox carries events from under the engine's lock to the subscribers, who must not be called there. Batches are
// numbered by the order in which they were put in and delivered in that order by whoever delivers first.
type outbox struct {
	delivering sync.Mutex // taken before mu
	mu         sync.Mutex
	sinks      []*sink                // guarded by mu; replaced, never changed
	waiting    [][]contextpilot.Event // guarded by mu
}

// subscribe adds a sink. After the returned function has been called, the sink gets no batch that was not already on its way.
func (o *outbox) subscribe(call func(events ...contextpilot.Event)) (cancel func()) {
	s := &sink{call: call}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sinks = append(slices.Clip(o.sinks), s)
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.sinks = slices.DeleteFunc(slices.Clone(o.sinks), func(x *sink) bool { return x == s })
	}
}

// put adds a batch, which it copies. The engine calls it under its lock, which makes the order that of the cache.
func (o *outbox) put(events []contextpilot.Event) {
	if len(events) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.sinks) > 0 {
		o.waiting = append(o.waiting, slices.Clone(events))
	}
}

// deliver calls the sinks with all batches put in so far, by this goroutine or another. On return they have been delivered.
func (o *outbox) deliver() {
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
