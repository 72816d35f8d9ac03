package residency

import (
	"sync"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/kvevents"
)

// Update says what a request has lost.
type Update struct {
	// Replica is [Config.Replica].
	Replica string
	// RequestID is the request; empty if Cleared is set.
	RequestID string
	// Resident is how many tokens of its prompt, from the beginning, are still in the GPU's cache.
	Resident int
	// Prompt is how many tokens the prompt has.
	Prompt int
	// Loadable is how many tokens, from the beginning, are in the GPU's cache or in lower tiers, and Tier, in capitals, is where the
	// first of them lies that is not on the GPU. Both are empty if no lower tier has more than the GPU.
	Loadable int
	Tier     string
	// Lost: the request has ended and none of its blocks is resident or can be loaded. It is the last update of this request, which
	// was dropped.
	Lost bool
	// Cleared is set on the update that ends those of a clearing, and says why the cache was cleared. What an engine clears
	// when nothing is left in it is not reported.
	Cleared kvevents.Cause
}

// Events converts updates for [contextpilot.Pilot.Observe]: Shrunk, Moved for what a lower tier has, Gone for what is lost,
// Cleared. Shrunk ones say how long the engine's prompt is, so that the pilot may count in other tokens. Requests must have been
// registered with their [contextpilot.Plan.RequestID]. For a sink that knows its scope ([contextpilot.Pilot.Sink]) pass the zero
// Scope.
func Events(scope contextpilot.Scope, updates []Update) []contextpilot.Event {
	events := make([]contextpilot.Event, len(updates))
	for i, u := range updates {
		ev := contextpilot.Event{Kind: contextpilot.Shrunk, Scope: scope, Request: u.RequestID, Tokens: u.Resident}
		switch {
		case u.Cleared != 0:
			ev.Kind = contextpilot.Cleared
		case u.Lost:
			ev.Kind = contextpilot.Gone
		case u.Loadable > u.Resident:
			ev.Kind, ev.Tier, ev.Prompt = contextpilot.Moved, u.Tier, u.Prompt
		default:
			ev.Prompt = u.Prompt
		}
		events[i] = ev
	}
	return events
}

// outlet gives updates to OnUpdate. The lock of its owner guards it.
type outlet struct {
	mu       sync.Locker
	onUpdate func([]Update) // nil: updates are dropped
	pending  []Update
	sending  bool // a goroutine is calling onUpdate
}

// deliver gives pending updates to OnUpdate, in order and without the lock. If another goroutine is doing so, that one takes
// them too.
func (o *outlet) deliver() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sending {
		return
	}
	o.sending = true
	for len(o.pending) > 0 {
		batch := o.pending
		o.pending = nil
		if o.onUpdate != nil {
			o.mu.Unlock()
			o.onUpdate(batch)
			o.mu.Lock()
		}
	}
	o.sending = false
}
