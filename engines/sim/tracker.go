package sim

import "github.com/ragpilot/ragpilot/contextpilot"

// seen is a request that went through the cache and of which something is still resident.
type seen struct {
	id           string
	node         int32 // where its resident prefix ends, as far as subscribers know
	prev, next   *seen // others that end at the same node
	older, newer *seen // finished before and after it
	finished     bool
	touched      bool // is in tracker.changed
}

// tracker follows how much of each request is resident. A request is kept only at the one node where its prefix ends, so
// it costs the same however long it is, and an eviction concerns exactly the requests that end at the evicted leaf.
type tracker struct {
	byID           map[string]*seen
	oldest, newest *seen // finished requests
	finished       int
	changed        []*seen // whose prefix shrank since the last report
}

func newTracker() tracker { return tracker{byID: make(map[string]*seen)} }

// start follows a request whose prompt ends at node n. No request of the same ID may be followed, see replace.
func (t *tracker) start(x *index, id string, n int32) *seen {
	s := &seen{id: id, node: none}
	t.byID[id] = s
	s.moveTo(x, n)
	return s
}

// replace ends the following of an earlier request of the same ID: what happens to the cache while a retry is admitted
// must not be reported as if it concerned the new prompt.
func (t *tracker) replace(x *index, id string) {
	if old, ok := t.byID[id]; ok {
		t.forget(x, old)
	}
}

// finish notes that a request has ended, and returns the one to be dropped in its place if more than limit have.
func (t *tracker) finish(s *seen, limit int) *seen {
	if t.byID[s.id] != s {
		return nil // replaced meanwhile
	}
	s.finished, s.older = true, t.newest
	if t.newest == nil {
		t.oldest = s
	} else {
		t.newest.newer = s
	}
	t.newest = s
	t.finished++
	if t.finished > limit {
		return t.oldest
	}
	return nil
}

func (t *tracker) forget(x *index, s *seen) {
	s.moveTo(x, none)
	delete(t.byID, s.id)
	if !s.finished {
		return
	}
	s.finished = false
	t.finished--
	if s.older == nil {
		t.oldest = s.newer
	} else {
		s.older.newer = s.newer
	}
	if s.newer == nil {
		t.newest = s.older
	} else {
		s.newer.older = s.older
	}
	s.older, s.newer = nil, nil
}

// evicted cuts the requests that end at the leaf n back to the node before it, and removes n from the index.
func (t *tracker) evicted(x *index, n int32) {
	for s := x.nodes[n].ends; s != nil; s = x.nodes[n].ends {
		s.moveTo(x, x.nodes[n].parent)
		if !s.touched {
			s.touched = true
			t.changed = append(t.changed, s)
		}
	}
	x.remove(n)
}

// report appends an event for each request that shrank since the last report, and forgets those that are gone.
func (t *tracker) report(x *index, events []contextpilot.Event, blockTokens int) []contextpilot.Event {
	for _, s := range t.changed {
		s.touched = false
		e := contextpilot.Event{Kind: contextpilot.Gone, Request: s.id}
		if s.node == root {
			t.forget(x, s)
		} else {
			e.Kind, e.Tokens = contextpilot.Shrunk, int(x.nodes[s.node].depth)*blockTokens
		}
		events = append(events, e)
	}
	clear(t.changed)
	t.changed = t.changed[:0]
	return events
}

// moveTo ends the request's prefix at another node, none: nowhere.
func (s *seen) moveTo(x *index, n int32) {
	if s.node != none {
		if s.prev == nil {
			x.nodes[s.node].ends = s.next
		} else {
			s.prev.next = s.next
		}
		if s.next != nil {
			s.next.prev = s.prev
		}
	}
	s.node, s.prev, s.next = n, nil, nil
	if n != none {
		s.next = x.nodes[n].ends
		if s.next != nil {
			s.next.prev = s
		}
		x.nodes[n].ends = s
	}
}
