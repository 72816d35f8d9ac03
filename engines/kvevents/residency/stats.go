package residency

// Stats counts what happened since the index was made, and what it holds now.
type Stats struct {
	Events  uint64 // applied, those passed over included
	Updates uint64 // given to OnUpdate, clearings apart
	Lost    uint64 // requests
	Clears  uint64

	Unknown      uint64 // removals of blocks that were not known: events were missed
	UnknownLower uint64 // the same for lower tiers
	Orphans      uint64 // blocks stored behind one that was not known
	HashesOnly   uint64 // blocks whose tokens did not come, or could not be cut, or not as the GPU's are
	Foreign      uint64 // blocks of cache groups that are left alone
	Conflicts    uint64 // blocks stored under the name of another one
	Overflow     uint64 // blocks not entered because of a bound
	Recut        uint64 // how often the engine changed its block size
	Forgotten    uint64 // requests dropped because of MaxRequests, MaxBlocks, MaxWaiting or Recut

	BlockSize    int            // tokens, 0: not known yet
	Blocks       int            // with a place in a prompt: those of the engine and those that requests wait for
	Hashes       int            // block names of the engine that are known
	Lower        map[string]int // blocks by lower tier
	OrphansNow   int
	Requests     int  // registered
	Waiting      int  // of these, without a place because the block size is not known
	Kept         int  // tokens of their prompts
	Unseen       int  // answered in a row while events came, without any of their blocks having been stored
	Mismatch     bool // Unseen has reached its limit though the engine stores blocks: the tokens are not the engine's
	Silent       bool // nothing was heard of the cache yet, or nothing since its engine has gone for good
	Complete     bool
	Inconsistent bool
}

// Stats returns a snapshot.
func (x *Index) Stats() Stats {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.stats
	s.BlockSize = x.geo.Load().size
	s.Blocks, s.Hashes = x.tree.live, len(x.entries)
	s.Lower = x.tiers.lower()
	s.OrphansNow = len(x.orphans.blocks)
	s.Requests, s.Waiting, s.Kept = len(x.reqs.byID), x.waiting, x.kept
	s.Unseen = x.unseen
	s.Mismatch = x.unseen >= x.cfg.Unseen && s.BlockSize > 0
	s.Silent = !x.spoken
	s.Complete = x.whole()
	s.Inconsistent = x.complete && !x.foreign && (x.broken || s.OrphansNow > 0)
	return s
}
