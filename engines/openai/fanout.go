package openai

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// fanout hands events to any number of sinks, in the goroutine of the sender. Lock order: mu is never held while
// a sink runs; subscription.turn is, so that calls of one sink do not overlap.
type fanout struct {
	mu   sync.Mutex
	subs []*subscription // guarded by mu; replaced, never changed in place
}

type subscription struct {
	sink  func(events ...contextpilot.Event)
	turn  sync.Mutex
	ended atomic.Bool
}

func (f *fanout) subscribe(sink func(events ...contextpilot.Event)) (cancel func()) {
	s := &subscription{sink: sink}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.subs = append(slices.Clip(f.subs), s)
	return func() {
		s.ended.Store(true)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.subs = slices.DeleteFunc(slices.Clone(f.subs), func(x *subscription) bool { return x == s })
	}
}

func (f *fanout) send(events ...contextpilot.Event) {
	f.mu.Lock()
	subs := f.subs
	f.mu.Unlock()
	for _, s := range subs {
		s.deliver(events)
	}
}

func (s *subscription) deliver(events []contextpilot.Event) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if !s.ended.Load() {
		s.sink(events...)
	}
}
