package sim

import (
	"math"
	"slices"
)

// none stands for no block and no node.
const none int32 = -1

// block is one slot of the cache.
type block struct {
	node         int32 // the node whose key it holds; none: it serves no hits
	older, newer int32 // neighbours among the blocks that hold the same key
	prev, next   int32 // neighbours in the queue of free blocks; meaningless elsewhere
	users        int32 // running requests that pin it
}

// pool knows which blocks are free, and in which order they are taken again: first those without a key, last
// released first; then those never used; then those with a key, longest free first.
type pool struct {
	limit  int     // number of blocks; 0: no limit
	blocks []block // those ever used
	bare   []int32 // free blocks without a key, the last one is taken first
	head   int32   // queue of free blocks with a key, oldest first
	tail   int32
	queued int // length of that queue
}

func newPool(limit int) pool { return pool{limit: limit, head: none, tail: none} }

// free returns the number of blocks that can be taken.
func (p *pool) free() int {
	if p.limit == 0 {
		return math.MaxInt
	}
	return len(p.bare) + p.limit - len(p.blocks) + p.queued
}

// take returns an unused block, with the key it has until the caller removes it. There must be a free one.
func (p *pool) take() int32 {
	if n := len(p.bare); n > 0 {
		b := p.bare[n-1]
		p.bare = p.bare[:n-1]
		return b
	}
	if p.limit == 0 || len(p.blocks) < p.limit {
		p.blocks = append(p.blocks, block{node: none, older: none, newer: none})
		return int32(len(p.blocks) - 1)
	}
	b := p.head
	p.unqueue(b)
	return b
}

// pin makes a block with a key serve one more request.
func (p *pool) pin(b int32) {
	if p.blocks[b].users == 0 {
		p.unqueue(b)
	}
	p.blocks[b].users++
}

// unpin ends one request's use of its blocks, last block first. As a block nearer the end of the prompt is older in the
// queue, it is also evicted first; the start of a prompt, which others are more likely to share, stays longest.
func (p *pool) unpin(mine []int32) {
	for _, b := range slices.Backward(mine) {
		x := &p.blocks[b]
		x.users--
		if x.users == 0 && x.node != none {
			p.enqueue(b)
		}
	}
	for _, b := range mine {
		if x := p.blocks[b]; x.users == 0 && x.node == none {
			p.bare = append(p.bare, b)
		}
	}
}

// strip takes the keys off all blocks; pinned ones stay with their requests.
func (p *pool) strip() {
	for b := p.head; b != none; b = p.blocks[b].next {
		p.bare = append(p.bare, b)
	}
	p.head, p.tail, p.queued = none, none, 0
	for b := range p.blocks {
		x := &p.blocks[b]
		x.node, x.older, x.newer = none, none, none
	}
}

func (p *pool) enqueue(b int32) {
	x := &p.blocks[b]
	x.prev, x.next = p.tail, none
	if p.tail == none {
		p.head = b
	} else {
		p.blocks[p.tail].next = b
	}
	p.tail = b
	p.queued++
}

func (p *pool) unqueue(b int32) {
	x := &p.blocks[b]
	if x.prev == none {
		p.head = x.next
	} else {
		p.blocks[x.prev].next = x.next
	}
	if x.next == none {
		p.tail = x.prev
	} else {
		p.blocks[x.next].prev = x.prev
	}
	p.queued--
}
