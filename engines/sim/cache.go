package sim

import "github.com/ragpilot/ragpilot/contextpilot"

// prompt is one request on its way through the cache.
type prompt struct {
	id     string
	chain  chain // keys of the prompt and behind it of the answer
	tokens int   // of the prompt
	answer int   // tokens of the answer

	// Set when admitted.
	blocks   []int32 // the blocks it pins, first to last; none if it was too large
	hits     int     // how many of them were read from the cache
	loaded   int     // how many of these from lower tiers
	disk     int     // how many of these from the disk
	computed int     // tokens of the prompt that are in the cache or being computed; all of them once prefill is over
	named    int     // blocks of it that others can read
	last     int32   // node of the last full block among the computed
	epoch    int     // of the cache at the time
	seen     *seen   // nil: not followed
	oversize bool
}

// full returns the number of the prompt's full blocks.
func (p *prompt) full() int { return p.tokens / p.chain.blockTokens }

// kv returns the number of tokens in the cache after output tokens were generated: all but the last one, whose KV entry
// a model would only compute with the next.
func (p *prompt) kv(output int) int { return max(0, p.tokens+output-1) }

// size returns the number of blocks for the prompt and its answer. That the prompt alone may need more than kv says only
// happens with an empty answer and blocks of one token.
func (p *prompt) size() int { return max(p.full(), blocksFor(p.kv(p.answer), p.chain.blockTokens)) }

// cache is a prefix cache; all of it is guarded by the engine's lock.
type cache struct {
	blockTokens int
	remember    int
	pool        pool
	index       index
	tracker     tracker
	epoch       int     // number of resets
	lost        []int32 // nodes whose last block was taken during the current admission
	evicted     int     // blocks that lost their key to another request

	// Of a [Server] only.
	lower     []*lower // slower tiers, the host's memory first
	writeBack bool
	prefetch  bool
	delayed   bool    // blocks are named by publish, not when they are computed
	load      []int32 // scratch of below
	moves     Transfers
	step      moved // since the last step began
	version   int   // changes when blocks may be somewhere else
}

func newCache(o Options) cache {
	limit := 0
	if o.CapacityTokens > 0 {
		limit = blocksFor(o.CapacityTokens, o.BlockTokens)
	}
	return cache{
		blockTokens: o.BlockTokens, remember: o.Remember,
		pool: newPool(limit), index: newIndex(), tracker: newTracker(),
	}
}

func blocksFor(tokens, blockTokens int) int { return (tokens + blockTokens - 1) / blockTokens }

// fits reports whether the prompt with its answer would fit the empty cache.
func (c *cache) fits(p *prompt) bool { return c.pool.limit == 0 || p.size() <= c.pool.limit }

// hits appends to blocks those that the prompt would read from the cache. The last prompt token is never read, because
// the engine needs its output to go on.
func (c *cache) hits(p *prompt, blocks []int32) []int32 {
	for _, k := range p.chain.keys[:max(0, p.tokens-1)/c.blockTokens] {
		n, ok := c.index.at[k]
		if !ok || c.index.nodes[n].oldest == none {
			break
		}
		blocks = append(blocks, c.index.nodes[n].oldest)
	}
	return blocks
}

// admit gives the prompt all blocks that it and its answer need, and makes its first blocks visible to others: those
// read from the cache and those that at most budget further tokens fill. It returns false, having changed nothing, if
// too few blocks are free. What was evicted is added to events.
func (c *cache) admit(p *prompt, budget int, events []contextpilot.Event) ([]contextpilot.Event, bool) {
	p.blocks = c.hits(p, p.blocks[:0])
	resident := len(p.blocks)
	load, disk := c.below(p, resident)
	p.hits, p.loaded, p.disk = resident+len(load), len(load), disk
	need := p.size() - resident
	idle := 0
	for _, b := range p.blocks {
		if c.pool.blocks[b].users == 0 {
			idle++
		}
	}
	if need > c.pool.free()-idle {
		return events, false
	}
	c.version++
	p.last, p.epoch, p.seen = root, c.epoch, nil
	c.tracker.replace(&c.index, p.id)
	for _, b := range p.blocks {
		c.pool.pin(b)
		p.last = c.pool.blocks[b].node
	}
	for range need {
		b := c.pool.take()
		if c.pool.blocks[b].node != none {
			c.drop(b)
		}
		c.pool.blocks[b].users = 1
		p.blocks = append(p.blocks, b)
	}
	for i, n := range load {
		c.hold(n, p.blocks[resident+i])
		p.last = n
	}
	c.step.host += len(load)
	c.step.disk += disk
	c.moves.Host += len(load) * c.blockTokens
	c.moves.Disk += disk * c.blockTokens
	p.computed, p.named = p.cached(), p.hits
	if len(c.lower) > 0 {
		c.settle() // what is computed is copied to the host, too, and must not push out what is just about to go there
	}
	c.compute(p, min(budget, p.tokens-p.cached()))
	c.settle()
	events = c.tracker.report(&c.index, events, c.blockTokens)
	if c.pool.limit > 0 && p.full() > 0 {
		p.seen = c.tracker.start(&c.index, p.id, p.last)
	}
	return events, true
}

// settle takes care of the nodes whose last block was taken.
func (c *cache) settle() {
	for _, n := range c.lost {
		if c.index.nodes[n].oldest == none { // the prompt may just have computed or loaded it again
			c.demote(n)
		} else {
			c.index.nodes[n].leaving = false
		}
	}
	c.lost = c.lost[:0]
}

// compute computes the next n tokens of an admitted prompt, and makes the blocks visible to others that they fill.
func (c *cache) compute(p *prompt, n int) {
	p.computed += n
	if !c.delayed {
		c.publish(p, p.computed)
	}
}

// publish makes the blocks of an admitted prompt visible to others that its first tokens fill.
func (c *cache) publish(p *prompt, tokens int) {
	from, to := p.named, tokens/c.blockTokens
	if to <= from || p.oversize || p.epoch != c.epoch {
		return
	}
	c.version++
	p.last, p.named = c.name(p, from, to, p.last), to
	if p.seen != nil && c.tracker.byID[p.id] == p.seen {
		p.seen.moveTo(&c.index, p.last)
	}
	c.keep(p, from, to)
}

// bypass is admit for a prompt that does not fit the empty cache.
func (c *cache) bypass(p *prompt) {
	p.blocks, p.hits, p.computed, p.named, p.epoch, p.seen = p.blocks[:0], 0, 0, 0, c.epoch, nil
	p.loaded, p.disk = 0, 0
	c.tracker.replace(&c.index, p.id)
}

// release unpins the prompt's blocks after output tokens of the answer were generated, and caches these too.
func (c *cache) release(p *prompt, output int, events []contextpilot.Event) []contextpilot.Event {
	if p.oversize || p.epoch != c.epoch {
		c.pool.unpin(p.blocks)
		if p.full() > 0 {
			events = append(events, contextpilot.Event{Kind: contextpilot.Gone, Request: p.id})
		}
		return events
	}
	c.publish(p, p.computed)
	c.version++
	last, end := p.last, p.named
	if p.computed == p.tokens {
		end = max(end, p.kv(output)/c.blockTokens)
		last = c.name(p, p.named, end, p.last)
	}
	c.keep(p, p.named, end)
	c.pool.unpin(p.blocks)
	if p.seen == nil {
		return events
	}
	if c.tracker.byID[p.id] == p.seen {
		p.seen.moveTo(&c.index, last) // the answer is followed, too
	}
	if old := c.tracker.finish(p.seen, c.remember); old != nil {
		c.tracker.forget(&c.index, old)
		events = append(events, contextpilot.Event{Kind: contextpilot.Gone, Request: old.id})
	}
	return events
}

// name gives the prompt's blocks from and up to to, which are full now, their keys; last is the node before them. It
// returns the last block's node.
func (c *cache) name(p *prompt, from, to int, last int32) int32 {
	for i := from; i < to; i++ {
		last = c.index.add(p.chain.keys[i], last)
		if c.pool.limit == 0 && c.index.nodes[last].oldest != none {
			continue // a copy can only matter once the first block is evicted
		}
		c.hold(last, p.blocks[i])
	}
	return last
}

// hold makes block b the newest that holds node n's key.
func (c *cache) hold(n, b int32) {
	d, x := &c.index.nodes[n], &c.pool.blocks[b]
	x.node, x.older, x.newer = n, d.newest, none
	if d.newest == none {
		d.oldest = b
	} else {
		c.pool.blocks[d.newest].newer = b
	}
	d.newest = b
}

// drop takes the key off block b. The node stays, without a block if this was the last, until the end of the admission.
func (c *cache) drop(b int32) {
	x := &c.pool.blocks[b]
	d := &c.index.nodes[x.node]
	if x.older == none {
		d.oldest = x.newer
	} else {
		c.pool.blocks[x.older].newer = x.newer
	}
	if x.newer == none {
		d.newest = x.older
	} else {
		c.pool.blocks[x.newer].older = x.older
	}
	if d.oldest == none {
		d.leaving = true
		c.lost = append(c.lost, x.node)
	}
	x.node, x.older, x.newer = none, none, none
	c.evicted++
}

// reset empties the cache. Blocks of running requests stay pinned, but are worth nothing any more.
func (c *cache) reset() {
	c.pool.strip()
	c.index, c.tracker = newIndex(), newTracker()
	for i, l := range c.lower {
		c.lower[i] = newLower(l.limit)
	}
	c.epoch++
}
