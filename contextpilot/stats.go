package contextpilot

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Stats counts what a Pilot has done since New and what it holds now. The counters of plans are about what was sent: one that
// [Pilot.TakeBack] took back is not counted any more, so that they may fall.
type Stats struct {
	Plans          int64
	BlocksSent     int64 // in full
	BlocksRef      int64 // as references
	BlocksLeftOut  int64
	Reordered      int64 // plans whose order is not the retriever's
	PrefixExpected int64 // tokens, sum of Plan.Prefix
	PrefixReported int64 // tokens, sum of the first Served event of each request
	FaultsByStage  map[string]int64
	Events         int64
	EventsUnknown  int64 // for requests that were not live
	Contradicted   int64 // answers that found clearly less in the cache than the index was sure of
	Shortened      int64 // requests that such answers shortened in the index
	// Bounded tables: what they hold, and what went because they were full or old.
	Scopes, ScopesDropped int64
	LiveRequests, Nodes   int64
	IndexTokens           int64
	History               int64 // blocks of earlier requests that policies remember
	RequestsDropped       int64 // for Capacity or MaxRequests
}

// Faults is the sum over the stages.
func (s Stats) Faults() (n int64) {
	for _, f := range s.FaultsByStage {
		n += f
	}
	return n
}

type counters struct {
	plans, sent, refs, leftOut, reordered atomic.Int64
	expected, reported                    atomic.Int64
	events, unknown                       atomic.Int64
	contradicted, shortened               atomic.Int64
	scopesDropped, shed                   atomic.Int64
	mu                                    sync.Mutex
	faults                                map[string]int64
}

func (c *counters) fault(stage string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.faults == nil {
		c.faults = map[string]int64{}
	}
	c.faults[stage]++
}

// add counts a plan, or with −1 a plan that was counted and not sent.
func (c *counters) add(p *Plan, n int64) {
	c.plans.Add(n)
	refs := 0
	for _, it := range p.Items {
		if it.Ref != nil {
			refs++
		}
	}
	c.refs.Add(n * int64(refs))
	c.sent.Add(n * int64(len(p.Items)-refs))
	c.leftOut.Add(n * int64(len(p.LeftOut)))
	c.expected.Add(n * int64(p.Prefix.Tokens))
	if p.Reordered() {
		c.reordered.Add(n)
	}
}

func (c *counters) observed(ev Event, applied, fresh bool) {
	c.events.Add(1)
	if !applied {
		c.unknown.Add(1)
	}
	if ev.Kind == Served && fresh {
		c.reported.Add(int64(ev.Tokens))
	}
}

// Stats returns the counters; it takes each scope's lock for a moment.
func (p *Pilot) Stats() Stats {
	c := &p.stats
	s := Stats{
		Plans: c.plans.Load(), BlocksSent: c.sent.Load(), BlocksRef: c.refs.Load(), BlocksLeftOut: c.leftOut.Load(),
		Reordered: c.reordered.Load(), PrefixExpected: c.expected.Load(), PrefixReported: c.reported.Load(),
		Events: c.events.Load(), EventsUnknown: c.unknown.Load(),
		Contradicted: c.contradicted.Load(), Shortened: c.shortened.Load(), ScopesDropped: c.scopesDropped.Load(), RequestsDropped: c.shed.Load(),
	}
	c.mu.Lock()
	s.FaultsByStage = maps.Clone(c.faults)
	c.mu.Unlock()
	s.History = p.past.Load()
	p.mu.RLock()
	scopes := slices.Collect(maps.Values(p.scopes))
	p.mu.RUnlock() // one that is busy must not hold up the others
	s.Scopes = int64(len(scopes))
	for _, sc := range scopes {
		sc.mu.Lock()
		s.LiveRequests += int64(sc.tree.Len())
		s.Nodes += int64(sc.tree.Nodes())
		s.IndexTokens += int64(sc.tree.Tokens())
		s.RequestsDropped += int64(sc.tree.Dropped())
		sc.mu.Unlock()
	}
	return s
}
