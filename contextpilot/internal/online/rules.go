package online

import (
	"math"
	"slices"
)

const (
	decay = 0.99 // of credits, for each request: the leader can change within a hundred requests
	// margin is how much of lacking it a low rank of a block is in a neighbour: 0 for the neighbour's first block,
	// margin for its last. Blocks at the end of a retriever's list come and go.
	margin = 0.3
	// maxArranged bounds the blocks that are arranged behind the path; further ones follow as retrieved. Rules are not
	// credited for requests of more blocks.
	maxArranged = 256
)

// rule is a way to arrange blocks for the futures.
type rule struct {
	name string
	// beta is how fast the weight of a neighbour falls with each mean block that it lacks: 1 or 0.5; 0: see nested.
	beta float64
	// rank is added for the last rank, and proportionally less for better ones.
	rank float64
}

var rules = [...]rule{
	{name: "nested"},
	{name: "near", beta: 1},
	{name: "near, by rank", beta: 1, rank: 0.2},
	{name: "broad, by rank", beta: 0.5, rank: 0.4},
}

// arrange is scratch.
type arrange struct {
	rest    []int // positions behind the path
	left    []int
	level   []int
	size    []float64 // tokens, in mean blocks
	grow    []float64 // exp(size)
	ease    []float64 // exp(beta × size)
	bulk    []float64 // 1 / √tokens: what stands in front of others must be worth it
	score   []float64 // by block, see soft
	weight  []float64 // by neighbour
	total   float64   // of weight
	ordered []int
}

// Arrange appends to dst the order to send: the positions in path, then the others as the leading rule arranges
// them. Without neighbours they follow as retrieved. O(k²) for up to maxArranged blocks. rule is the name of the
// rule, "" without neighbours.
func (o *Outlook) Arrange(dst, path []int) (order []int, rule string) {
	k, w := len(o.blocks), &o.work
	w.level = append(w.level[:0], make([]int, k)...)
	for _, i := range path {
		w.level[i] = -1
	}
	w.rest = w.rest[:0]
	for i := range k {
		if w.level[i] == 0 {
			w.rest = append(w.rest, i)
		}
	}
	dst = append(dst, path...)
	if len(o.near) == 0 {
		return append(dst, w.rest...), ""
	}
	lead := 0
	for v := range rules {
		if o.credit[v] > o.credit[lead] {
			lead = v
		}
	}
	rest := w.rest
	tail := rest[min(len(rest), maxArranged):]
	w.rest = rest[:len(rest)-len(tail)]
	learn := k <= math.MaxUint8+1 && !o.aside
	o.orders = o.orders[:0]
	from := len(dst)
	o.prepare()
	for v, r := range rules {
		if o.aside && v != lead {
			continue
		}
		if r.beta == 0 {
			o.nested(path)
		} else {
			o.soft(r)
		}
		if v == lead {
			dst = append(dst, w.ordered...)
		}
		if learn {
			for _, part := range [][]int{path, w.ordered, tail} {
				for _, i := range part {
					o.orders = append(o.orders, uint8(i))
				}
			}
		}
	}
	dst = append(dst[:from+len(w.rest)], tail...)
	return dst, rules[lead].name
}

// prepare fills in what all rules use.
func (o *Outlook) prepare() {
	w := &o.work
	mean := float64(max(o.tokens, 1)) / float64(len(o.blocks))
	w.size, w.grow, w.bulk = w.size[:0], w.grow[:0], w.bulk[:0]
	for _, b := range o.blocks {
		t := min(float64(max(b.Tokens, 1))/mean, 50) // its exponential is a factor of weights
		w.size = append(w.size, t)
		w.grow = append(w.grow, math.Exp(t))
		w.bulk = append(w.bulk, 1/math.Sqrt(t))
	}
}

// soft orders the blocks from the end: the one that the likely futures lack most stands last, then the same among the rest. With x a
// neighbour, i a block, s(i) its size in mean blocks, β the rule's beta, and a weight c(x) that is certain for one that waits and
// else 1, a neighbour weighs the less, the more of the blocks in hand it lacks:
//
//	w(x) = c(x) · exp(−β · Σ s(i) over the blocks i that are left and that x lacks)
//
// The score of a block is how much of that weight lacks it, Σ w(x)·lack(x, i) ÷ Σ w(x); see worst for what else counts. When a block
// goes, the neighbours that lack it come nearer: w(x) grows by exp(β·s(i)).
func (o *Outlook) soft(r rule) {
	w := &o.work
	w.ease = append(w.ease[:0], w.grow...)
	if r.beta == 0.5 {
		for i := range w.ease {
			w.ease[i] = math.Sqrt(w.ease[i])
		}
	}
	o.weighFutures(r)
	w.left = append(w.left[:0], w.rest...)
	w.ordered = append(w.ordered[:0], w.rest...)
	for n := len(w.left); n > 0; n-- {
		at := o.worst(r, w.left[:n])
		i := w.left[at]
		copy(w.left[at:n], w.left[at+1:n])
		w.ordered[n-1] = i
		o.takeAway(i, w.left[:n-1])
		if w.total > huge { // only with hundreds of blocks that no neighbour has
			o.scale(1 / w.total)
			w.total = 1
		}
	}
}

// weighFutures fills in weight, total and score for all blocks, scaled so that the largest weight is 1.
func (o *Outlook) weighFutures(r rule) {
	k, w := len(o.blocks), &o.work
	w.weight = w.weight[:0]
	best := math.Inf(-1)
	for x := range o.near {
		e := 0.0
		if o.near[x].waits() {
			e = math.Log(certain)
		}
		for i := range k {
			if o.holds[i]>>x&1 == 0 {
				e -= r.beta * w.size[i]
			}
		}
		w.weight = append(w.weight, e)
		best = max(best, e)
	}
	w.score = append(w.score[:0], make([]float64, k)...)
	w.total = 0
	for x, e := range w.weight {
		e = math.Exp(e - best)
		w.weight[x] = e
		w.total += e
		for i, l := range o.lack[x][:k] {
			w.score[i] += e * l
		}
	}
}

// takeAway raises the weights of the neighbours that lack block i, and with them the scores of the blocks that are left.
func (o *Outlook) takeAway(i int, left []int) {
	w := &o.work
	for x := range w.weight {
		if o.holds[i]>>x&1 != 0 {
			continue
		}
		more := w.weight[x] * (w.ease[i] - 1)
		w.weight[x] += more
		w.total += more
		lack := o.lack[x]
		for _, j := range left {
			w.score[j] += more * lack[j]
		}
	}
}

const huge = 1e100

// scale multiplies all weights and what was added up with them.
func (o *Outlook) scale(by float64) {
	w := &o.work
	for x := range w.weight {
		w.weight[x] *= by
	}
	for i := range w.score {
		w.score[i] *= by
	}
}

// worst returns the index in left of the block to go, that with the highest (score + rank · i ÷ k) ÷ √s(i); of equals the one of lower
// relevance, then of lower rank.
func (o *Outlook) worst(r rule, left []int) int {
	w, at, high := &o.work, 0, math.Inf(-1)
	step := r.rank / float64(len(o.blocks))
	for y, i := range left {
		s := (w.score[i]/w.total + step*float64(i)) * w.bulk[i]
		if s > high || s == high && o.blocks[i].Score <= o.blocks[left[at]].Score {
			at, high = y, s
		}
	}
	return at
}

// nested puts first the part that the nearest neighbour shares, and inside that part again.
func (o *Outlook) nested(path []int) {
	w := &o.work
	fit := o.all // neighbours that have the whole path
	for _, i := range path {
		fit &= o.holds[i]
	}
	w.left = append(w.left[:0], w.rest...)
	for _, i := range w.rest {
		w.level[i] = 0
	}
	for depth := 1; fit != 0; depth++ {
		best, most := -1, 0
		for x := range o.near {
			if fit>>x&1 == 0 {
				continue
			}
			sum, whole := 0, true
			for _, i := range w.left {
				if o.holds[i]>>x&1 != 0 {
					sum += o.blocks[i].Tokens
				} else {
					whole = false
				}
			}
			if !whole && sum > most {
				best, most = x, sum
			}
		}
		if best < 0 {
			break
		}
		inside := w.left[:0]
		for _, i := range w.left {
			if o.holds[i]>>best&1 != 0 {
				w.level[i] = depth
				inside = append(inside, i)
			}
		}
		w.left = inside
	}
	w.ordered = append(w.ordered[:0], w.rest...)
	slices.SortStableFunc(w.ordered, func(a, b int) int { return w.level[b] - w.level[a] })
}
