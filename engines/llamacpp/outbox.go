package llamacpp

import (
	"slices"
	"sync"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// outbox carries events from under the engine's lock to the subscribers, who are called without it.
type outbox struct {
	delivering sync.Mutex // taken before mu; makes batches arrive in order and one at a time
	mu         sync.Mutex
	sinks      []*sink                // guarded by mu; replaced, never changed
	waiting    [][]contextpilot.Event // guarded by mu
}

type sink struct {
	call func(events ...contextpilot.Event)
}

func (o *outbox) subscribe(call func(events ...contextpilot.Event)) (cancel func()) {
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

// put adds a batch, which it keeps.
func (o *outbox) put(events []contextpilot.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(events) > 0 && len(o.sinks) > 0 {
		o.waiting = append(o.waiting, events)
	}
}

// deliver calls the sinks with all that was put in so far; on return it has been delivered, by this goroutine or another.
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
				s.call(slices.Clone(events)...)
			}
		}
	}
}
