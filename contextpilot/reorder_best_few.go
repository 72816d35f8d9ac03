package contextpilot

import "github.com/ragpilot/ragpilot/contextpilot/internal/online"

// With few blocks in a request retrieval order reuses much by itself. A request that leaves it, for a resident path, is not there for later
// requests that begin as it does, and these compute more than without ragpilot. So a request of few blocks leaves it only for a path that
// has all of its blocks or finds a number of blocks more. That number follows the share of requests that lately computed more. This costs
// reuse: see docs/adr/0030-few-blocks.md for how much, and for what it costs at least if the later requests are known.
const (
	// Up to mostCareful blocks the rule holds in full, from notCareful on it does not hold.
	mostCareful = 5
	notCareful  = 8

	harmedFirst  = 0.03  // assumed share of harmed requests before anything is known
	harmedFade   = 0.995 // of what is known, for each request
	harmedFree   = 0.005 // up to this share any path is taken
	harmedBy     = 0.008 // with so much more, strictness is 1
	mostStrict   = 2
	leastToCount = 16 // tokens that a request must find less to be harmed
)

// beginning is what a request in retrieval order finds.
type beginning struct {
	blocks, tokens int // resident ones
	// retrieval are the tokens that would be resident if all requests were sent in retrieval order.
	retrieval int
	stays     bool // this order is to be sent
}

// beginning looks at a request of few blocks, which are those of q. A path with found tokens is there for it.
func (b *best) beginning(q Query, blocks []online.Block, found int) (r beginning) {
	k := len(blocks)
	if !isFew(q) || q.From == NoNode {
		return r
	}
	r.retrieval = total(blocks[:b.history.Retrieved(blocks)])
	for n := q.From; r.blocks < k; r.blocks++ {
		child, ok := q.Tree.Child(n, q.Blocks[r.blocks].Key)
		if !ok {
			break
		}
		n = child
		r.tokens += blocks[r.blocks].Tokens
	}
	more := found - r.tokens
	if r.stays = more <= 0; r.stays || found == total(blocks) || r.tokens < r.retrieval { // an earlier request has left this order already
		return r
	}
	least := 1
	if r.blocks == 0 {
		least = k
		if k > mostCareful {
			least = notCareful - k
		}
	}
	strict := min(max(0, (b.harmed-harmedFree)/harmedBy), mostStrict)
	r.stays = float64(more) < strict*float64(least*blocks[r.blocks].Tokens)
	return r
}

// learn takes in whether the last request of Order computed more than if all were sent in retrieval order.
func (b *best) learn(q Query) {
	if !isFew(q) {
		return
	}
	b.harmed *= harmedFade
	if b.why.PathTokens+leastToCount < b.why.Retrieval {
		b.harmed += 1 - harmedFade
	}
}

func total(blocks []online.Block) (tokens int) {
	for i := range blocks {
		tokens += blocks[i].Tokens
	}
	return tokens
}

func isFew(q Query) bool { return q.careful && len(q.Blocks) < notCareful }
