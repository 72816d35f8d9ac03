//go:build unix

package vllmtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/residency"
	"github.com/ragpilot/ragpilot/engines/vllm"
)

// delay measures how long an eviction takes from the engine's event to the pilot. Another subscriber with an index of its own
// finds out which event it was that took a request's blocks; events have the time at which the engine made them, by the clock of
// this machine.
type delay struct {
	index *residency.Index

	mu       sync.Mutex
	on       bool                 // guarded by mu
	stepped  time.Time            // guarded by mu; the engine's time of the batch that is being applied
	caused   map[string]time.Time // guarded by mu; by request and what it has left
	received map[string]time.Time // guarded by mu; the pilot's
}

func newDelay() *delay {
	d := &delay{caused: map[string]time.Time{}, received: map[string]time.Time{}}
	d.index = residency.New(residency.Config{OnUpdate: d.update})
	return d
}

// follow returns what keeps the index of d up to date.
func (d *delay) follow(t *testing.T, s *server) func(context.Context) error {
	t.Helper()
	sub, err := kvevents.New(kvevents.Config{
		Sources: []kvevents.Source{{Name: "clock", Endpoint: s.events(), Replay: s.replay(), Rank: kvevents.AnyRank}},
		Sink:    func(kvevents.Publisher) kvevents.Sink { return timed{d.index, d} },
	})
	if err != nil {
		t.Fatal(err)
	}
	return sub.Run
}

// timed is the index of d, which notes the time of each batch.
type timed struct {
	*residency.Index

	of *delay
}

func (x timed) Apply(b *kvevents.Batch) {
	x.of.mu.Lock()
	x.of.stepped = time.UnixMicro(int64(b.Time * 1e6))
	x.of.mu.Unlock()
	x.Index.Apply(b)
}

func (d *delay) prompt(p vllm.Prompt) {
	tokens := make([]int, len(p.Tokens))
	for i, t := range p.Tokens {
		tokens[i] = int(t)
	}
	d.index.Register(p.RequestID, tokens, residency.Key{Salt: p.Salt})
}

func (d *delay) answered(events ...contextpilot.Event) {
	for _, ev := range events {
		if ev.Kind == contextpilot.Served {
			d.index.Served(ev.Request)
		}
	}
}

func (d *delay) update(updates []residency.Update) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, u := range updates {
		if d.on && u.Cleared == 0 {
			d.caused[fmt.Sprint(u.RequestID, " ", u.Resident)] = d.stepped
		}
	}
}

// reached notes that an eviction has come to the pilot.
func (d *delay) reached(ev contextpilot.Event, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.on && (ev.Kind == contextpilot.Shrunk || ev.Kind == contextpilot.Gone) {
		d.received[fmt.Sprint(ev.Request, " ", ev.Tokens)] = now
	}
}

// measure switches the measurement on or off.
func (d *delay) measure(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.on = on
}

// times returns how long events that took blocks of requests were on their way, until the last of these requests was known to the
// pilot; shortest first.
func (d *delay) times() []time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	longest := map[time.Time]time.Duration{}
	for what, at := range d.received {
		if from, ok := d.caused[what]; ok {
			longest[from] = max(longest[from], at.Sub(from))
		}
	}
	return slices.Sorted(maps.Values(longest))
}
