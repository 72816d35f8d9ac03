package sim

import "fmt"

// Slots returns the number of blocks that were ever in use at a time, for tests of memory bounds.
func (e *Engine) Slots() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.cache.pool.blocks)
}

// CheckIdle returns an error unless every block is free exactly once, as it must be when no request runs.
func (e *Engine) CheckIdle() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cache.checkIdle()
}

// CheckIdle is that of [Engine].
func (s *Server) CheckIdle() error { return s.cache.checkIdle() }

// CheckRunning returns an error if more requests run than may, or more tokens are computed in the step under way.
func (s *Server) CheckRunning() error {
	tokens := 0
	if s.busy {
		for _, j := range s.batch {
			tokens += max(j.chunk, 1)
		}
	}
	if tokens > s.options.BatchTokens || len(s.running) > s.options.MaxRunning {
		return fmt.Errorf("%d tokens in the step, %d requests running", tokens, len(s.running))
	}
	return nil
}

func (c *cache) checkIdle() error {
	p := &c.pool
	times := make([]int, len(p.blocks))
	for _, b := range p.bare {
		times[b]++
		if p.blocks[b].node != none {
			return fmt.Errorf("block %d has a key, but is not in the queue", b)
		}
	}
	queued := 0
	for b := p.head; b != none; b = p.blocks[b].next {
		times[b]++
		queued++
		if p.blocks[b].node == none {
			return fmt.Errorf("block %d has no key, but is in the queue", b)
		}
	}
	for b, n := range times {
		if n != 1 || p.blocks[b].users != 0 {
			return fmt.Errorf("block %d is free %d times and has %d users", b, n, p.blocks[b].users)
		}
	}
	if queued != p.queued {
		return fmt.Errorf("%d blocks in the queue, counted %d", queued, p.queued)
	}
	if in := len(c.index.nodes) - 1 - len(c.index.spare); in != len(c.index.at) {
		return fmt.Errorf("%d nodes in use, %d keys", in, len(c.index.at))
	}
	return nil
}

// CheckTiers returns an error if a block is in a slower place than one behind it, if a tier holds more than it may, or if a key is nowhere.
func (s *Server) CheckTiers() error {
	c := &s.cache
	for i, l := range c.lower {
		n := 0
		for at, last := l.oldest, none; at != none; last, at = at, l.links[at].newer {
			if n++; l.links[at].older != last || !l.has(at) || n > l.held {
				return fmt.Errorf("tier %d: node %d is linked wrongly", i, at)
			}
		}
		if n != l.held || n > l.limit {
			return fmt.Errorf("tier %d: %d nodes, counted %d, limit %d", i, n, l.held, l.limit)
		}
	}
	for _, j := range s.queue {
		if j.match.version == c.version+1 && j.match.reach != c.levels(&j.prompt) {
			return fmt.Errorf("%s: blocks moved unnoticed: %v, now %v", j.prompt.id, j.match.reach, c.levels(&j.prompt))
		}
	}
	for _, n := range c.index.at {
		level, parent := c.level(n), c.index.nodes[n].parent
		if level > len(c.lower) {
			return fmt.Errorf("node %d is nowhere", n)
		}
		if parent != root && c.level(parent) > level {
			return fmt.Errorf("node %d is at level %d, and the one before it at %d", n, level, c.level(parent))
		}
	}
	return nil
}

// MostOvertaken returns how many later requests were admitted before one that waits, at most.
func (s *Server) MostOvertaken() int {
	most := 0
	for _, j := range s.queue {
		most = max(most, j.overtaken)
	}
	return most
}

// Nanos is how long so many blocks take.
func (c Copy) Nanos(blocks, blockBytes int) float64 { return c.nanos(blocks, blockBytes) }
