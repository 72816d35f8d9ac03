package kvstore

import (
	"slices"

	"github.com/ragpilot/ragpilot/engines/kvevents"
)

// Where events say that pages of a tier lie.
const (
	Disk = "DISK"
	Host = "CPU" // the program's memory, below a card's
)

// ID names a page in a tier below memory. Salt is what all pages of one salt have in common, zero without a salt.
type ID struct{ Salt, Page Hash }

// SaltOf returns the Salt of all IDs of a salt.
func SaltOf(salt string) Hash { return root(salt) }

// Tier is where pages lie that are not in memory, such as a disk. The store calls it and must not wait for it.
type Tier interface {
	// Has reports whether a page is there and should be loaded rather than computed.
	Has(id ID) bool
	// Wants reports whether a page that was computed should be saved.
	Wants(id ID) bool
	// Medium is where its pages lie, as events say: Disk or Host.
	Medium() string
}

// unsaved is a full page that a tier wants.
type unsaved struct {
	id     ID
	page   *page     // nil: it was given up, and memory has what was in it
	memory []float32 // nil, too: lost
	stored kvevents.Event
}

// Unsaved is a page to be saved.
type Unsaved struct {
	ID     ID
	Memory []float32
	stored kvevents.Event
}

// maxRescued bounds the memory of pages that were given up before they were saved, in floats: 16 MiB.
const maxRescued = 4 << 20

// Loads returns the pages to load, in order, each once. [Store.Loaded] or [Store.NotLoaded] must follow for each.
func (s *Store) Loads() []ID {
	loads := s.loads
	s.loads = nil
	return loads
}

// Loaded takes a page's floats, and copies them. It does nothing if no sequence waits for the page any more.
func (s *Store) Loaded(hash Hash, floats []float32) {
	if !s.Loading(hash) {
		return
	}
	p := s.index[hash]
	if s.pool.Write(p.memory, floats) != nil {
		s.NotLoaded(hash)
		return
	}
	s.stats.Loaded++
	p.computed, p.loading = true, false
}

// Loading reports whether a sequence waits for a page to be loaded.
func (s *Store) Loading(hash Hash) bool { p := s.index[hash]; return p != nil && p.loading }

// NotLoaded has a page computed that could not be loaded, or not soon enough. It reports whether a sequence waited for it.
func (s *Store) NotLoaded(hash Hash) bool {
	if !s.Loading(hash) {
		return false
	}
	p := s.index[hash]
	p.loading, p.unreported = false, nil // the first sequence that is ready for it computes it
	return true
}

// save queues a full page of the index for the tier, if the tier wants it.
func (s *Store) save(p *page, id ID, stored kvevents.Event) {
	if s.tier == nil || p.unsaved != nil || !s.tier.Wants(id) {
		return
	}
	if len(s.unsaved) > 2*s.capacity+maxRescued/s.pool.Floats() { // most of them were lost
		s.unsaved = slices.DeleteFunc(s.unsaved, func(u *unsaved) bool { return u.page == nil && u.memory == nil })
	}
	p.unsaved = &unsaved{id: id, page: p, stored: stored}
	s.unsaved = append(s.unsaved, p.unsaved)
}

// HasUnsaved reports whether pages wait to be saved.
func (s *Store) HasUnsaved() bool { return len(s.unsaved) > 0 }

// NextUnsaved returns the page that has waited longest to be saved, as a copy in buffer or as memory that is the caller's now. ok is
// false if there is none. [Store.Saved] must follow once it is in the tier.
func (s *Store) NextUnsaved(buffer []float32) (next Unsaved, ok bool) {
	for len(s.unsaved) > 0 {
		u := s.unsaved[0]
		s.unsaved = s.unsaved[1:]
		switch {
		case u.page != nil:
			u.page.unsaved = nil
			if s.pool.Read(buffer, u.page.memory) != nil {
				s.stats.Lost++
				continue
			}
			return Unsaved{u.id, buffer, u.stored}, true
		case u.memory != nil:
			s.rescued -= s.pool.Floats()
			return Unsaved{u.id, u.memory, u.stored}, true
		}
	}
	s.unsaved = nil
	return Unsaved{}, false
}

// Saved notes that a page is in the tier now.
func (s *Store) Saved(u Unsaved) { s.reportBelow(u.ID.Page, u.stored) }

// reportBelow reports that a page is in the tier, once.
func (s *Store) reportBelow(hash Hash, stored kvevents.Event) {
	if !s.below[hash] {
		s.below[hash] = true
		stored.Medium = s.tier.Medium()
		s.events = append(s.events, stored)
	}
}

// Vanished notes that the tier has a page no more.
func (s *Store) Vanished(hash Hash) {
	if s.below[hash] {
		delete(s.below, hash)
		s.events = append(s.events, kvevents.Event{Kind: kvevents.Removed, Hashes: []kvevents.Hash{hash.event()}, Medium: s.tier.Medium()})
	}
}

// rescue keeps the memory of a page that is given up before it was saved, as far as there is room.
func (s *Store) rescue(p *page) {
	u := p.unsaved
	if u == nil {
		return
	}
	u.page = nil
	if s.rescued+s.pool.Floats() > maxRescued {
		s.stats.Lost++
		return
	}
	var err error
	if u.memory, err = s.pool.Take(&p.memory); err != nil {
		u.memory = nil
		s.stats.Lost++
		return
	}
	s.rescued += s.pool.Floats()
}

// forgetUnsaved drops all pages that wait to be saved.
func (s *Store) forgetUnsaved() {
	for _, u := range s.unsaved {
		if u.page != nil {
			u.page.unsaved = nil
		}
	}
	s.unsaved, s.rescued = nil, 0
}
