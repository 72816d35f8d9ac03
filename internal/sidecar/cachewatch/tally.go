package cachewatch

import (
	"slices"
	"sync"

	"github.com/ragpilot/ragpilot/engines/kvevents"
)

// counters are those of the metrics of a source, in the order of sourceCounters.
type counters [7]uint64

func countersOf(s *kvevents.Status) counters {
	return counters{s.Batches, s.Events, s.Gaps, s.Holes, s.Restarts, s.Clears, unread(s)}
}

// tally adds up what the publishers of an engine's sources have counted, those included that were forgotten since.
type tally struct {
	mu   sync.Mutex // guards what follows; taken before the engine's
	sub  *kvevents.Subscriber
	last map[kvevents.Publisher]counters // what was added last
	sums map[string]counters             // by source
}

// add adds what has changed since it was called last. t.mu is held.
func (t *tally) add(sub *kvevents.Subscriber, list []kvevents.Status) {
	if t.sums == nil {
		t.sums = make(map[string]counters)
	}
	if sub != t.sub { // all begin anew
		t.sub, t.last = sub, nil
	}
	now := make(map[kvevents.Publisher]counters, len(list))
	for i := range list {
		s := &list[i]
		n := countersOf(s)
		before := t.last[s.Publisher]
		for j := range n {
			if n[j] < before[j] { // it was forgotten, and has come back
				before = counters{}
			}
		}
		sum := t.sums[s.Source]
		for j := range n {
			sum[j] += n[j] - before[j]
		}
		t.sums[s.Source], now[s.Publisher] = sum, n
	}
	t.last = now
}

// total is what the metrics show of a source.
type total struct {
	source              string
	connected, complete bool
	counters
}

// total returns what is known of a source. Publishers that have gone say nothing of what is connected and complete. t.mu is held.
func (t *tally) total(source string, list []kvevents.Status) total {
	out := total{source: source, counters: t.sums[source]}
	for i := range list {
		if s := &list[i]; s.Source == source && s.Connected {
			out.complete = s.Complete && (out.complete || !out.connected)
			out.connected = true
		}
	}
	return out
}

// totals returns what the metrics show of the engine's sources, or of one with its name as long as they are not known.
func (e *engine) totals() []total {
	e.tally.mu.Lock()
	defer e.tally.mu.Unlock()
	sub, list, at := e.status()
	e.tally.add(sub, list)
	names := make([]string, 0, len(at))
	for name := range at {
		names = append(names, name)
	}
	if len(names) == 0 {
		names = []string{e.cfg.Name}
	}
	slices.Sort(names)
	out := make([]total, len(names))
	for i, name := range names {
		out[i] = e.tally.total(name, list)
	}
	return out
}
