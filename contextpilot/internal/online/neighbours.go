package online

import (
	"math"
	"slices"
)

const (
	// near is the number of neighbours. More change nothing, within noise, on any workload tried.
	near = 8
	// looked bounds the uses of one block that are looked at, newest first, and lookedAll those of all blocks: a block
	// that all requests have does not show which ones are near.
	looked    = 64
	lookedAll = 1 << 14
	// sharp is how fast the weight of a neighbour falls with the tokens by which it shares less than the nearest, in
	// mean blocks, when a path is weighed.
	sharp = 0.3
	// certain is how much more a request that is known to follow weighs than one that may be like it.
	certain = 4
)

// Mask is a set of neighbours, nearest first.
type Mask uint32

// Outlook is what is known about the futures of the request in hand. It is valid until the next Look or Remember.
type Outlook struct {
	h      *History
	blocks []Block
	tokens int     // of all blocks
	ids    []int32 // numbers of the blocks, -1: new
	near   []neighbour
	all    Mask
	holds  []Mask      // by position: neighbours that have the block
	lack   [][]float64 // by neighbour and position: 1 if it lacks the block, less the better it ranks the block
	weight []float64   // of neighbours on a path
	total  float64
	orders []uint8        // of all rules
	credit credits        // of the rules, this request's findings included
	aside  bool           // see Peek: nothing is learned
	met    []int32        // scratch
	at     map[uint64]int // position + 1 of a block, if requests are awaited
	work   arrange
}

type neighbour struct {
	place  int32 // in the ring; -1 - i: the i-th waiting request
	age    int32 // requests since; -1: to come
	shared int32
}

// waits reports whether the neighbour has not been sent yet.
func (n neighbour) waits() bool { return n.place < 0 }

func (o *Outlook) reset() { o.blocks, o.near, o.orders = nil, o.near[:0], o.orders[:0] }

// Look finds the neighbours of a request whose blocks are distinct. blocks is kept until Remember or the next Look.
// O(k) map look-ups and at most looked uses of each block.
func (h *History) Look(blocks []Block) *Outlook {
	h.look(&h.out, blocks)
	h.credit = h.out.credit
	return &h.out
}

// Peek is [History.Look] for a request that is not going to be sent: nothing is learned from it, and the request in
// hand stays in hand. The Outlook is valid until the next Peek, and as long as nothing is remembered.
func (h *History) Peek(blocks []Block) *Outlook {
	h.aside.aside = true
	h.look(&h.aside, blocks)
	return &h.aside
}

func (h *History) look(o *Outlook, blocks []Block) {
	o.reset()
	o.h, o.blocks, o.tokens = h, blocks, 0
	o.ids = o.ids[:0]
	for i, b := range blocks {
		o.tokens += b.Tokens
		d, ok := h.ids[b.Key]
		if !ok {
			d = -1
		} else {
			h.at[d] = int32(i) + 1
		}
		o.ids = append(o.ids, d)
	}
	o.find()
	o.weigh()
	for _, d := range o.ids {
		if d >= 0 {
			h.at[d] = 0
		}
	}
}

// find fills near.
func (o *Outlook) find() {
	h := o.h
	limit := min(looked, max(near, lookedAll/max(len(o.blocks), 1)))
	for i, d := range o.ids {
		if d < 0 {
			continue
		}
		uses := h.blocks[d].uses
		t := int32(max(o.blocks[i].Tokens, 1))
		for _, n := range uses[max(0, len(uses)-limit):] {
			place := int32(n % Remembered)
			if h.shared[place] == 0 {
				h.touched = append(h.touched, place)
			}
			h.shared[place] += t
		}
	}
	for _, place := range h.touched {
		age := h.count - 1 - h.numberAt(place)
		o.offer(neighbour{place: place, age: int32(age), shared: h.shared[place]})
		h.shared[place] = 0
	}
	h.touched = h.touched[:0]
	if len(h.waiting) > 0 {
		o.findWaiting()
	}
}

// findWaiting adds requests that are known to follow.
func (o *Outlook) findWaiting() {
	o.at = make(map[uint64]int, len(o.blocks))
	for i, b := range o.blocks {
		o.at[b.Key] = i + 1
	}
	for i, keys := range o.h.waiting {
		shared := int32(0)
		for _, key := range keys {
			if at := o.at[key]; at > 0 {
				shared += int32(max(o.blocks[at-1].Tokens, 1))
			}
		}
		if shared > 0 {
			o.offer(neighbour{place: int32(-1 - i), age: -1, shared: shared})
		}
	}
}

// numberAt returns the number of the request that stands at a place of the ring.
func (h *History) numberAt(place int32) uint32 {
	last := h.count - 1
	return last - (last-uint32(place))%Remembered
}

// offer keeps the nearest, the newer of equals first.
func (o *Outlook) offer(n neighbour) {
	full := len(o.near) == near
	if full && !nearer(n, o.near[near-1]) {
		return
	}
	if full {
		o.near = o.near[:near-1]
	}
	i := len(o.near)
	for i > 0 && nearer(n, o.near[i-1]) {
		i--
	}
	o.near = slices.Insert(o.near, i, n)
}

func nearer(a, b neighbour) bool {
	return a.shared > b.shared || a.shared == b.shared && a.age < b.age
}

// weigh finds out which blocks the neighbours have, and credits the rules.
func (o *Outlook) weigh() {
	k, h := len(o.blocks), o.h
	o.all = 1<<len(o.near) - 1
	o.holds = append(o.holds[:0], make([]Mask, k)...)
	o.weight, o.total = o.weight[:0], 0
	var found [len(rules)]int
	for x, n := range o.near {
		if x == len(o.lack) {
			o.lack = append(o.lack, nil)
		}
		o.lack[x] = slices.Grow(o.lack[x][:0], k)[:k]
		for i := range o.lack[x] {
			o.lack[x][i] = 1
		}
		if n.waits() {
			keys := h.waiting[-1-n.place]
			for j, key := range keys {
				o.has(x, o.at[key]-1, j, len(keys))
			}
		} else {
			r := &h.ring[n.place]
			o.met = o.met[:0]
			for j, d := range r.blocks {
				at := h.at[d] - 1
				o.met = append(o.met, at)
				o.has(x, int(at), j, len(r.blocks))
			}
			o.judge(r, &found)
		}
		less := float64(o.near[0].shared-n.shared) * float64(k) / float64(max(o.tokens, 1))
		w := math.Exp(-sharp * less)
		if n.waits() {
			w *= certain
		}
		o.weight = append(o.weight, w)
		o.total += w
	}
	o.credit = h.credit
	if len(o.near) > 0 {
		for v := range found {
			o.credit[v] = o.credit[v]*decay + float64(found[v])
		}
	}
}

// has notes that neighbour x has the block at position i, at rank j of n.
func (o *Outlook) has(x, i, j, n int) {
	if i >= 0 {
		o.holds[i] |= 1 << x
		o.lack[x][i] = margin * float64(j) / float64(n)
	}
}

// judge raises found to what the request in hand would have found of each rule's order of r; met are the positions of
// r's blocks in the request in hand.
func (o *Outlook) judge(r *record, found *[len(rules)]int) {
	if r.orders == nil {
		return
	}
	k := len(r.orders) / len(rules)
	for v := range found {
		sum := 0
		for _, p := range r.orders[v*k : (v+1)*k] {
			at := o.met[p]
			if at < 0 {
				break
			}
			sum += o.blocks[at].Tokens
		}
		found[v] = max(found[v], sum)
	}
}

// Neighbours returns the number of neighbours, 0 if no remembered request shares a block.
func (o *Outlook) Neighbours() int { return len(o.near) }

// All is the set of all neighbours.
func (o *Outlook) All() Mask { return o.all }

// Holds returns the neighbours that have the block at position i.
func (o *Outlook) Holds(i int) Mask { return o.holds[i] }

// Share returns the share of the neighbours' weight that lies in m, 0…1.
func (o *Outlook) Share(m Mask) float64 {
	if m == o.all {
		return 1
	}
	if m == 0 {
		return 0
	}
	w := 0.0
	for x := range o.weight {
		if m>>x&1 != 0 {
			w += o.weight[x]
		}
	}
	return w / o.total
}
