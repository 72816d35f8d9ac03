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
	p := &e.cache.pool
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
	if in := len(e.cache.index.nodes) - 1 - len(e.cache.index.spare); in != len(e.cache.index.at) {
		return fmt.Errorf("%d nodes in use, %d keys", in, len(e.cache.index.at))
	}
	return nil
}
