package compat

import "github.com/ragpilot/ragpilot/internal/sidecar/compat/recorded"

// keep enters a new state in the table, and gives back what the one holds that goes for it. The API's lock is held.
func (a *API) keep(tenant string, s *state) {
	s.part = a.opt.Memory.Part(tenant, "reorder", s.dropOldest)
	if _, gone, full := a.tenants.Put(tenant, s); full {
		gone.part.Close()
	}
}

// weigh counts what a tenant's state holds now, and lets go of what is too much. No lock may be held.
func (a *API) weigh(tenant string) {
	a.mu.Lock()
	s, ok := a.tenants.Get(tenant)
	a.mu.Unlock()
	if !ok {
		return
	}
	s.Lock()
	s.weigh()
	s.Unlock()
	a.opt.Memory.Settle()
}

// weigh gives back what tables keep of their peak and counts what the state holds now, for who holds the lock.
func (s *state) weigh() {
	recorded.Shrink(s.live.index, s.live.docs)
	now := s.indexBytes() + s.chains.Weight() + 8*cap(s.times)
	s.part.Add(now - s.bytes)
	s.bytes = now
}

func (s *state) indexBytes() int { return s.live.index.Weight() + s.live.docs.Weight() }

// dropOldest is for the budget: of the index or the histories, whichever holds more, the oldest entry goes; after them the
// times to the first token, and the empty index with its root.
func (s *state) dropOldest() int {
	s.Lock()
	defer s.Unlock()
	before := s.bytes
	first, second := s.live.index.DropOldest, s.chains.DropOldest
	if s.chains.Weight() > s.indexBytes() {
		first, second = second, first
	}
	if !first() && !second() {
		s.times, s.oldest = nil, 0
		s.dropRoot()
	}
	s.weigh()
	return before - s.bytes
}

// dropRoot begins a new generation if nothing is in this one: the root of a first batch may hold many documents. A request under
// way would end in the old generation, so its documents stay.
func (s *state) dropRoot() {
	if !s.live.docs.Taken() {
		s.begun = s.hasIndex()
		s.live = newGeneration(s.limit)
	}
}
