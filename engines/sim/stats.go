package sim

// Stats counts what went through an [Engine] since it was made, and says what it holds now.
type Stats struct {
	Requests     int // admitted to the cache, the oversize ones included
	PromptTokens int // of these requests
	HitTokens    int // of PromptTokens, read from the cache
	OutputTokens int // generated, those of broken-off answers included

	Oversize      int // requests whose prompt and answer did not fit the empty cache: computed in full, not cached
	EvictedBlocks int // blocks whose text was given up for another request

	Running        int // requests that pin their blocks now
	Waiting        int // requests that wait for free blocks now
	ResidentBlocks int // different blocks of text in the cache now; second copies are not counted
	CapacityBlocks int // 0: unlimited
	Followed       int // requests whose evictions would be reported now
}

// HitRatio returns the part of the prompt tokens that was read from the cache, from 0 to 1.
func (s Stats) HitRatio() float64 { return float64(s.HitTokens) / float64(max(1, s.PromptTokens)) }

// Stats returns the counts at one moment.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.stats
	s.EvictedBlocks = e.cache.evicted
	s.Waiting = len(e.queue)
	s.ResidentBlocks = len(e.cache.index.at)
	s.CapacityBlocks = e.cache.pool.limit
	s.Followed = len(e.cache.tracker.byID)
	return s
}
