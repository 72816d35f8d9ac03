package online

import "slices"

// A [History] remembers the last Remembered requests, as far as these have no more than MaxBlocks blocks; the last one whatever
// it has.
const (
	Remembered = 1 << 14
	MaxBlocks  = 64 * Remembered
)

// Block is one block of a request, in retrieval order.
type Block struct {
	Key    uint64
	Tokens int
	Score  float64 // breaks ties
}

// History is what is remembered of earlier requests. See [New].
type History struct {
	ids     map[uint64]int32 // block key → its number
	blocks  []block          // by number
	at      []int32          // by number: position + 1 in the request in hand
	free    []int32          // numbers of forgotten blocks
	ring    []record         // request n stands at n % Remembered
	count   uint32           // requests remembered so far
	oldest  uint32           // of those not forgotten
	held    int              // blocks of the requests not forgotten
	credit  credits
	waiting [][]uint64 // requests that are known to follow, by keys
	out     Outlook    // scratch of the request in hand
	aside   Outlook    // scratch of Peek
	shared  []int32    // scratch: ring place → tokens shared with the request in hand
	touched []int32    // scratch: ring places with shared tokens
}

// credits are by rule: the tokens that requests would lately have found of its orders.
type credits [len(rules)]float64

// block is what is known of a block while a remembered request has it.
type block struct {
	key  uint64
	uses []uint32 // requests that have it, oldest first
}

// record is one remembered request.
type record struct {
	blocks []int32 // in retrieval order
	orders []uint8 // positions: the orders of all rules, one behind the other; nil if none were made
}

// New returns an empty History.
func New() *History { return &History{ids: map[uint64]int32{}} }

// Len returns the number of remembered requests.
func (h *History) Len() int { return int(h.count - h.oldest) }

// Add remembers a request that was ordered elsewhere: it is a neighbour of later ones and credits no rule.
func (h *History) Add(blocks []Block) {
	h.out.reset()
	h.out.blocks = blocks
	h.Remember()
}

// Remember adds the request of the last [History.Look], with the orders that [Outlook.Arrange] made for it, if it did.
// The oldest requests are forgotten if there are too many. Amortised O(k).
func (h *History) Remember() {
	o := &h.out
	if len(o.blocks) == 0 {
		return
	}
	for h.Len() > 0 && (h.Len() == Remembered || h.held+len(o.blocks) > MaxBlocks) {
		h.forget()
	}
	place := h.count % Remembered
	if int(place) == len(h.ring) {
		h.ring = append(h.ring, record{})
		h.shared = append(h.shared, 0)
	}
	r := &h.ring[place]
	r.blocks, r.orders = make([]int32, len(o.blocks)), slices.Clone(o.orders)
	for i, b := range o.blocks {
		d, ok := h.ids[b.Key]
		if !ok {
			d = h.number(b.Key)
		}
		h.blocks[d].uses = append(h.blocks[d].uses, h.count)
		r.blocks[i] = d
	}
	h.count++
	h.held += len(o.blocks)
	o.reset()
}

func (h *History) number(key uint64) int32 {
	d := int32(len(h.blocks))
	if n := len(h.free); n > 0 {
		d = h.free[n-1]
		h.free = h.free[:n-1]
	} else {
		h.blocks = append(h.blocks, block{})
		h.at = append(h.at, 0)
	}
	h.blocks[d] = block{key: key}
	h.ids[key] = d
	return d
}

// forget takes the oldest request out.
func (h *History) forget() {
	r := &h.ring[h.oldest%Remembered]
	for _, d := range r.blocks {
		b := &h.blocks[d]
		if b.uses = b.uses[1:]; len(b.uses) == 0 {
			delete(h.ids, b.key)
			*b = block{}
			h.free = append(h.free, d)
		}
	}
	h.oldest++
	h.held -= len(r.blocks)
	*r = record{}
}

// Held returns the number of blocks of the remembered requests.
func (h *History) Held() int { return h.held }

// Forget forgets the oldest requests until so many blocks are forgotten, or nothing is left, and returns the number of
// requests.
func (h *History) Forget(blocks int) (requests int) {
	for least := h.held - blocks; h.Len() > 0 && h.held > max(least, 0); requests++ {
		h.forget()
	}
	if h.Len() == 0 { // tables keep the memory of the most that they have held
		h.ids, h.blocks, h.at, h.free = map[uint64]int32{}, nil, nil, nil
	}
	return requests
}

// Await announces requests that are known to follow, by the keys of their blocks in retrieval order. Until the next
// call they are neighbours of every request that shares a block with them, of more weight than remembered ones.
// requests is kept.
func (h *History) Await(requests [][]uint64) { h.waiting = requests }

// Awaits reports whether requests are known to follow.
func (h *History) Awaits() bool { return len(h.waiting) > 0 }

// Familiar returns the tokens of those blocks that a remembered request has. O(k).
func (h *History) Familiar(blocks []Block) (tokens int) {
	for _, b := range blocks {
		if _, ok := h.ids[b.Key]; ok {
			tokens += b.Tokens
		}
	}
	return tokens
}

// compared bounds the requests that Retrieved looks at.
const compared = 256

// Retrieved returns how many of the first blocks an earlier request had in the same retrieval order: what a prompt in retrieval order would
// share if all were sent so. It looks at the newest requests that have the first block. O(k) for each of them.
func (h *History) Retrieved(blocks []Block) (most int) {
	if len(blocks) == 0 {
		return 0
	}
	first, ok := h.ids[blocks[0].Key]
	if !ok {
		return 0
	}
	uses := h.blocks[first].uses
	for _, use := range uses[max(0, len(uses)-compared):] {
		n := 0
		for _, d := range h.ring[use%Remembered].blocks {
			if n == len(blocks) || h.blocks[d].key != blocks[n].Key {
				break
			}
			n++
		}
		most = max(most, n)
	}
	return most
}
