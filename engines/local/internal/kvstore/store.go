package kvstore

import (
	"container/list"
	"slices"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// PageTokens is how many tokens' keys and values lie in a page.
const PageTokens = 16

// Store is a cache of a fixed number of pages.
type Store struct {
	pool     gpu.Pool
	capacity int
	made     int // pages whose memory was allocated
	free     []*page
	index    map[Hash]*page
	pinned   []*page   // of prefixes
	unused   list.List // of *page: those in index with no sequence; the first is given up first
	used     int       // pages that sequences have
	clears   int
	events   []kvevents.Event
	stats    Stats

	tier    Tier // nil: none
	loads   []ID
	unsaved []*unsaved
	rescued int           // floats of unsaved pages that were given up
	below   map[Hash]bool // pages that events say are in the tier
}

// page is the memory of PageTokens tokens.
type page struct {
	memory     gpu.Page
	hash       Hash // of a page in the index
	indexed    bool
	computed   bool            // all its tokens are
	clears     int             // of the store, when the page was taken
	owner      *Sequence       // the sequence that computes it; nil: it is computed or loaded, or none computes it though some wait for it
	loading    bool            // it is in the index, is not computed, and a tier has it
	unreported *kvevents.Event // of a page that is loading or was loaded: what to report when a sequence has all in front of it
	unsaved    *unsaved        // of a page in the index that is computed
	refs       int
	place      *list.Element // in unused
}

// Stats are counters, in pages unless they say tokens.
type Stats struct {
	Capacity  int
	Used      int   // in sequences
	Cached    int   // in no sequence, and could be found again
	Evictions int64 // pages given up for others
	Queried   int64 // tokens that were looked up, with those of sequences that began once more
	Hits      int64 // of these, those that were found, or loaded
	Loaded    int64 // from the tier
	Lost      int64 // pages that were given up before they were saved
}

// New returns an empty store of pages of a pool, in front of a tier or of none (nil). Memory is allocated as it is needed.
func New(pages int, pool gpu.Pool, tier Tier) *Store {
	return &Store{pool: pool, capacity: pages, index: map[Hash]*page{}, tier: tier, below: map[Hash]bool{}}
}

// Reserve allocates all pages that are not there yet, or returns an error: the store is closed then. It is for devices that may have no
// room for them later.
func (s *Store) Reserve() error {
	for s.made < s.capacity {
		memory, err := s.pool.New()
		if err != nil {
			s.Close()
			return err
		}
		s.made++
		s.free = append(s.free, &page{memory: memory})
	}
	return nil
}

// Close gives all pages back, those of prefixes too. No sequence may be open, and nothing may be called afterwards.
func (s *Store) Close() {
	for _, p := range slices.Concat(s.free, s.pinned) {
		s.pool.Free(p.memory)
	}
	for _, p := range s.index {
		s.pool.Free(p.memory)
	}
	s.free, s.pinned, s.index = nil, nil, nil
}

// Stats returns the counters.
func (s *Store) Stats() Stats {
	stats := s.stats
	stats.Capacity, stats.Used, stats.Cached = s.capacity, s.used, s.unused.Len()
	return stats
}

// Events returns what was stored and given up since the last call, in order. Hashes are numbers, of 64 bits.
func (s *Store) Events() []kvevents.Event {
	events := s.events
	s.events = nil
	return events
}

// Clear gives up all pages that no sequence uses. Those in use are not found by others any more, nor is what is computed behind them:
// no page that was taken before comes into the index any more, and none is saved.
func (s *Store) Clear() {
	s.clears++
	s.forgetUnsaved()
	for e := s.unused.Front(); e != nil; e = s.unused.Front() {
		s.drop(s.unused.Remove(e).(*page))
	}
	for _, p := range s.index {
		p.indexed, p.loading, p.unreported = false, false, nil
	}
	clear(s.index)
	clear(s.below) // those who follow the events forget it, too
	s.events = append(s.events, kvevents.Event{Kind: kvevents.Cleared})
}

// Prefix returns how many of a prompt's first tokens are computed: whole pages, and never all of the prompt, since the last token
// must be computed for its logits.
func (s *Store) Prefix(tokens []int32, salt string) int {
	hash, n := root(salt), 0
	for n+PageTokens < len(tokens) {
		hash = chain(hash, tokens[n:n+PageTokens])
		if p := s.index[hash]; p == nil || !p.computed {
			break
		}
		n += PageTokens
	}
	return n
}

// Room reports whether n more pages can be had.
func (s *Store) Room(n int) bool { return n <= s.capacity-s.used }

// take returns a page for a sequence: a free one, one never used, or the one unused longest. There must be room.
func (s *Store) take() *page {
	s.used++
	if n := len(s.free); n > 0 {
		p := s.free[n-1]
		s.free = s.free[:n-1]
		p.refs, p.clears = 1, s.clears
		return p
	}
	if s.made < s.capacity {
		memory, err := s.pool.New()
		if err != nil {
			panic("kvstore: no page, and none was reserved: " + err.Error())
		}
		s.made++
		return &page{memory: memory, refs: 1, clears: s.clears}
	}
	p := s.unused.Remove(s.unused.Front()).(*page)
	delete(s.index, p.hash)
	s.rescue(p)
	s.stats.Evictions++
	s.events = append(s.events, kvevents.Event{Kind: kvevents.Removed, Hashes: []kvevents.Hash{p.hash.event()}})
	*p = page{memory: p.memory, refs: 1, clears: s.clears}
	return p
}

// share gives a page of the index to a sequence.
func (s *Store) share(p *page) {
	if p.refs == 0 {
		s.unused.Remove(p.place)
		s.used++
	}
	p.refs++
}

// enter puts a page into the index, under a hash that is not in it.
func (s *Store) enter(p *page, hash Hash) {
	p.hash, p.indexed = hash, true
	s.index[hash] = p
}

// release takes a page from a sequence.
func (s *Store) release(p *page, from *Sequence) {
	if p.owner == from {
		p.owner = nil
	}
	if p.refs--; p.refs > 0 {
		return
	}
	s.used--
	if p.indexed && p.computed && p.unreported == nil {
		p.place = s.unused.PushBack(p)
		return
	}
	s.drop(p)
}

// drop frees a page that is in no list.
func (s *Store) drop(p *page) {
	if p.indexed {
		delete(s.index, p.hash)
	}
	*p = page{memory: p.memory}
	s.free = append(s.free, p)
}
