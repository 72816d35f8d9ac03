package contextpilot

import "github.com/ragpilot/ragpilot/contextpilot/internal/online"

// smallRequest is the number of blocks up to which retrieval order reuses much by itself. A request that leaves it, for a resident path, is
// not there for later requests that begin as it does, and these compute more than without ragpilot. So a request of few blocks stays in
// retrieval order if a path finds no more than that, or less more than the first block is long while that is not resident; unless requests
// are known to follow, which decide then. See docs/adr/0030-few-blocks.md.
const smallRequest = 7

// beginning is what a request in retrieval order finds.
type beginning struct {
	blocks, tokens int // resident ones
	// retrieval are the tokens that would be resident if all requests were sent in retrieval order.
	retrieval int
	stays     bool // this order is to be sent
}

// beginning looks at a request of few blocks, which are those of q. A path with found tokens is there for it.
func (b *best) beginning(q Query, blocks []online.Block, found int) (r beginning) {
	if !q.careful || len(blocks) > smallRequest || q.From == NoNode || b.history.Awaits() {
		return r
	}
	r.retrieval = total(blocks[:b.history.Retrieved(blocks)])
	for n := q.From; r.blocks < len(blocks); r.blocks++ {
		child, ok := q.Tree.Child(n, q.Blocks[r.blocks].Key)
		if !ok {
			break
		}
		n = child
		r.tokens += blocks[r.blocks].Tokens
	}
	leftAlready := r.tokens < r.retrieval // by an earlier request
	r.stays = found <= r.tokens || r.blocks == 0 && !leftAlready && found < blocks[0].Tokens
	return r
}

func total(blocks []online.Block) (tokens int) {
	for i := range blocks {
		tokens += blocks[i].Tokens
	}
	return tokens
}
