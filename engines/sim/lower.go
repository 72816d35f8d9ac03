package sim

// lower is a tier below the engine's memory: which nodes it holds, the least recently used first. A node's parent is never less recently
// used than the node, so a node leaves a tier before its parent does.
type lower struct {
	limit          int // nodes
	held           int
	oldest, newest int32
	links          []link // by node
}

// link are a node's neighbours in the list.
type link struct {
	older, newer int32
	in           bool
}

func newLower(limit int) *lower { return &lower{limit: limit, oldest: none, newest: none} }

func (l *lower) has(n int32) bool { return int(n) < len(l.links) && l.links[n].in }

// use makes n the most recently used node, and adds it if it is not there.
func (l *lower) use(n int32) {
	if l.newest == n {
		return
	}
	if l.has(n) {
		l.remove(n)
	}
	l.insert(n, none)
}

// useBefore adds n with the rank of its parent: it leaves the tier just before the parent does.
func (l *lower) useBefore(n, parent int32) {
	if !l.has(parent) {
		parent = none
	}
	l.insert(n, parent)
}

// insert adds n before the next more recently used one; none: as the most recently used.
func (l *lower) insert(n, newer int32) {
	for int(n) >= len(l.links) {
		l.links = append(l.links, link{})
	}
	older := l.newest
	if newer != none {
		older = l.links[newer].older
		l.links[newer].older = n
	} else {
		l.newest = n
	}
	if older == none {
		l.oldest = n
	} else {
		l.links[older].newer = n
	}
	l.links[n] = link{older: older, newer: newer, in: true}
	l.held++
}

func (l *lower) remove(n int32) {
	x := l.links[n]
	if x.older == none {
		l.oldest = x.newer
	} else {
		l.links[x.older].newer = x.newer
	}
	if x.newer == none {
		l.newest = x.older
	} else {
		l.links[x.newer].older = x.older
	}
	l.links[n] = link{}
	l.held--
}

// The methods of cache below concern its lower tiers.

// level returns the fastest place where a node is: 0 is the engine's memory.
func (c *cache) level(n int32) int {
	if x := &c.index.nodes[n]; x.oldest != none || x.leaving {
		return 0
	}
	for i, l := range c.lower {
		if l.has(n) {
			return i + 1
		}
	}
	return len(c.lower) + 1
}

// levels returns where the blocks of a prompt are that can be read: those before reach[0] in the engine's memory, those from there to
// reach[1] in the host's, those from there to reach[2] on the disk. O(log of the prompt's blocks): a block is never in a
// slower place than those behind it.
func (c *cache) levels(p *prompt) (reach [3]int) {
	limit := max(0, p.tokens-1) / c.blockTokens
	for level := range reach {
		low, high := 0, limit
		if level > 0 {
			low = reach[level-1]
		}
		for low < high {
			middle := (low + high) / 2
			if n, ok := c.index.at[p.chain.keys[middle]]; ok && c.level(n) <= level {
				low = middle + 1
			} else {
				high = middle
			}
		}
		reach[level] = low
		if level == len(c.lower) {
			for level++; level < len(reach); level++ {
				reach[level] = low
			}
			break
		}
	}
	return reach
}

// below returns the nodes of a prompt's blocks from the one numbered from on that are to be loaded, and how many of them are on the disk.
func (c *cache) below(p *prompt, from int) (nodes []int32, disk int) {
	if len(c.lower) == 0 {
		return nil, 0
	}
	nodes = c.load[:0]
	for _, k := range p.chain.keys[from:max(from, max(0, p.tokens-1)/c.blockTokens)] {
		n, ok := c.index.at[k]
		if !ok || c.prefetch && c.level(n) > 1 {
			break
		}
		if c.level(n) > 1 {
			disk++
		}
		nodes = append(nodes, n)
	}
	c.load = nodes
	return nodes, disk
}

// demote takes care of a node that has just left the engine's memory.
func (c *cache) demote(n int32) {
	c.index.nodes[n].leaving = false
	if len(c.lower) == 0 {
		c.tracker.evicted(&c.index, n)
		return
	}
	if c.level(n) > len(c.lower) { // in none of them
		c.step.back++
		c.moves.Stored += c.blockTokens
	}
	c.put(0, n)
}

// put makes node n the most recently used of a lower tier.
func (c *cache) put(tier int, n int32) {
	c.lower[tier].use(n)
	c.shrink(tier)
}

// shrink moves what a tier has no room for one tier down, unless it is somewhere else, too.
func (c *cache) shrink(tier int) {
	l := c.lower[tier]
	if l.held <= l.limit {
		return
	}
	old := l.oldest
	l.remove(old)
	switch {
	case c.level(old) <= tier: // in a faster one, too
	case tier+1 == len(c.lower):
		c.tracker.evicted(&c.index, old)
	default:
		if !c.lower[tier+1].has(old) {
			c.moves.Spill += c.blockTokens
		}
		c.put(tier+1, old)
	}
}

// keep notes in the lower tiers that the first blocks of a prompt were used, up to the one numbered to; those from the one numbered from
// on have just been computed. The last block is noted first, so that no block is older than those behind it.
func (c *cache) keep(p *prompt, from, to int) {
	if len(c.lower) == 0 {
		return
	}
	for i := to - 1; i >= 0; i-- {
		n := c.pool.blocks[p.blocks[i]].node
		if n == none {
			continue
		}
		if i >= from && !c.writeBack && !c.lower[0].has(n) {
			c.step.stored++
			c.moves.Stored += c.blockTokens
			c.put(0, n)
			continue
		}
		for _, l := range c.lower {
			if l.has(n) {
				l.use(n)
			}
		}
	}
}

// fetch reads blocks of a waiting prompt from the disk into the host's memory for left nanoseconds, each of which takes blockTime. It
// returns the rest of the time, and whether the prompt has more to read.
func (c *cache) fetch(p *prompt, left, blockTime float64) (rest float64, more bool) {
	reach := c.levels(p)
	if reach[1] == reach[2] || left < blockTime {
		return left, reach[1] < reach[2]
	}
	for i := reach[1] - 1; i >= 0; i-- { // what is read takes the place of other prompts' blocks, not of this one's
		if n := c.index.at[p.chain.keys[i]]; c.lower[0].has(n) {
			c.lower[0].use(n)
		}
	}
	for i := reach[1]; i < reach[2]; i++ {
		n, ok := c.index.at[p.chain.keys[i]]
		if !ok || c.level(n) != 2 {
			break // what the host gave up for it took its place on the disk
		}
		if left < blockTime {
			return left, true
		}
		c.lower[0].useBefore(n, c.index.nodes[n].parent)
		if c.shrink(0); !c.lower[0].has(n) {
			break // the host's memory is full of what was used later
		}
		c.version++
		left -= blockTime
		c.moves.Ahead += c.blockTokens
	}
	return left, false
}
