package contextpilot

import (
	"context"
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"time"

	"github.com/ragpilot/ragpilot/internal/foresight"
	"github.com/ragpilot/ragpilot/internal/merge"
)

// BestOptions configures the policy `best`, see [NewBest]. The zero value is the recommended setup.
type BestOptions struct {
	// Future weighs what later requests can reuse of a path against what this request reuses now, as a share of the
	// tokens behind the path. Above 0.1 short requests lose more than later ones gain. 0: 0.08; negative: nothing.
	Future float64
	// Aging is how much of a resident token's worth is lost with every doubling of the requests since it was last
	// sent (beyond the first 50), because the engine may have dropped it. 0: 0.075; negative: nothing, for an index
	// that is told every eviction.
	Aging float64
	// Visits bounds the resident blocks that paths are tried through for one request; at each, as many look-ups as the
	// request has blocks may be needed. 0: 1,024.
	Visits int
	// BatchEffort is the work that PlanBatch may spend on improving a plan, in nodes and blocks looked at for each block
	// of the batch. 0: 5 for each block of a mean request beyond 7, within 30 and 450, and less for very large batches;
	// negative: none.
	BatchEffort int
	// BatchTime ends that improvement early: the best plan so far is taken, and depends on the machine's speed. 0: no
	// limit.
	BatchTime time.Duration
	// Partition is the number of requests that PlanBatch plans as one whole; larger batches are partitioned by
	// likeness. 0: 100,000.
	Partition int
	// Seed chooses among batch plans of like quality.
	Seed uint64
}

// best puts the best resident path first and arranges the blocks behind it for later requests.
//
// The path is the one with the largest worth of its resident tokens and of the future that it leaves open: a path
// that runs through blocks which likely futures lack hides everything behind it from them. Futures and the
// arrangement of the rest: package internal/foresight. Offline: package internal/merge.
type best struct {
	opt     BestOptions
	history *foresight.History
	search  pathSearch
	why     Why
	asked   string // request of the last Order, whose outlook Sent will remember
	blocks  []foresight.Block
}

// NewBest returns the policy `best` with settings of its own; for Config.NewPolicy.
func NewBest(o BestOptions) Policy {
	o.Future = defaultTo(o.Future, 0.08)
	o.Aging = defaultTo(o.Aging, 0.075)
	if o.Visits <= 0 {
		o.Visits = 1024
	}
	return &best{opt: o, history: foresight.New()}
}

// defaultTo returns v, def for 0, and 0 for less.
func defaultTo(v, def float64) float64 {
	if v == 0 {
		return def
	}
	return max(v, 0)
}

func (*best) Name() string { return "best" }

// Order looks for neighbours and for the best path. Time: the uses of the request's blocks, at most opt.Visits nodes
// of the index, and O(k²) for the rest. Behind a conversation's history no other prompt can be met: retrieval order.
func (b *best) Order(dst []int, q Query) []int {
	b.asked, b.why = "", Why{}
	if q.Continued() || len(q.Blocks) == 0 {
		return identity(dst, len(q.Blocks))
	}
	out := b.look(q)
	path := b.search.run(q, out, b.opt)
	dst, rule := out.Arrange(dst, path)
	b.asked = q.Request
	b.why = Why{
		Neighbours: out.Neighbours(), Rule: rule, Path: len(path), PathTokens: b.search.tokens, Longest: b.search.longest,
		Visited: b.search.visited, Bounded: b.search.visited >= b.opt.Visits,
	}
	return dst
}

func (b *best) look(q Query) *foresight.Outlook {
	b.read(q)
	return b.history.Look(b.blocks)
}

func (b *best) read(q Query) {
	b.blocks = b.blocks[:0]
	for _, c := range q.Blocks {
		b.blocks = append(b.blocks, foresight.Block{Key: uint64(c.Key), Tokens: c.Tokens, Score: c.Score})
	}
}

// Sent remembers the request and what every rule would have sent.
func (b *best) Sent(request string, q Query, _ []int) {
	if q.Continued() || len(q.Blocks) == 0 {
		return
	}
	if b.asked == request {
		b.history.Remember()
	} else {
		b.read(q)
		b.history.Add(b.blocks)
	}
	b.asked = ""
}

// Gone changes nothing: what was asked is remembered whether it is resident or not.
func (*best) Gone(string) {}

// Await makes requests that are about to follow known, for a [Window].
func (b *best) Await(requests [][]uint64) { b.history.Await(requests) }

// Why tells about the last Order.
func (b *best) Why() Why { return b.why }

// pathSearch looks for the best resident path that is made of a request's blocks only. Depth first and exact, unless
// the bound on visits is reached.
type pathSearch struct {
	q      Query
	out    *foresight.Outlook
	opt    BestOptions
	total  int // tokens of all blocks
	base   int // tokens in front of the blocks
	find   positions
	free   []bool // by position: not on the current path
	kids   []Node // stack
	cur    []int
	best   []int
	value  float64
	gate   gate
	tokens int // of the best path
	// longest is the number of tokens of the longest path, whatever its worth.
	longest, visited int
}

func (s *pathSearch) run(q Query, out *foresight.Outlook, opt BestOptions) []int {
	s.q, s.out, s.opt = q, out, opt
	s.total, s.base = 0, 0
	s.find.reset(len(q.Blocks))
	s.free = append(s.free[:0], make([]bool, len(q.Blocks))...)
	for i, b := range q.Blocks {
		s.total += b.Tokens
		s.free[i] = true
		s.find.put(b.Key, i)
	}
	if q.From != NoNode {
		s.base = q.Tree.Tokens(q.From)
	}
	s.kids, s.cur, s.best = s.kids[:0], s.cur[:0], s.best[:0]
	s.value, s.tokens, s.longest, s.visited = 0, 0, 0, 0
	s.gate = q.gate
	if q.From != NoNode {
		s.visit(q.From, 0, out.All())
	}
	return s.best
}

// visit weighs the path that ends at n and goes on behind it. worth is that of the path's tokens, holds are the
// neighbours that have all of its blocks.
func (s *pathSearch) visit(n Node, worth float64, holds foresight.Mask) {
	s.visited++
	tokens := 0
	if len(s.cur) > 0 {
		tokens = s.q.Tree.Tokens(n) - s.base
		value := worth
		if s.opt.Future > 0 && holds != 0 {
			value += s.opt.Future * float64(s.total-tokens) * s.out.Share(holds)
		}
		s.longest = max(s.longest, tokens)
		if value > s.value {
			s.value, s.tokens = value, tokens
			s.best = append(s.best[:0], s.cur...)
		}
	} else if s.opt.Future > 0 && holds != 0 {
		s.value = s.opt.Future * float64(s.total) * s.out.Share(holds)
	}
	left := len(s.q.Blocks) - len(s.cur)
	if left == 0 {
		return
	}
	if s.q.Tree.Fanout(n) > left {
		for i := range s.free {
			if !s.free[i] {
				continue
			}
			if c, ok := s.q.Tree.Child(n, s.q.Blocks[i].Key); ok {
				s.step(c, i, tokens, worth, holds)
			}
		}
		return
	}
	from := len(s.kids)
	s.kids = s.q.Tree.Children(s.kids, n)
	for at := from; at < len(s.kids); at++ {
		c := s.kids[at]
		if i := s.find.get(s.q.Tree.Key(c)); i >= 0 && s.free[i] {
			s.step(c, i, tokens, worth, holds)
		}
	}
	s.kids = s.kids[:from]
}

func (s *pathSearch) step(c Node, i, tokens int, worth float64, holds foresight.Mask) {
	if s.visited >= s.opt.Visits {
		return
	}
	first := 0
	if s.gate.displace > 0 {
		first = slices.Index(s.free, true)
	}
	if !s.gate.open(i, len(s.cur), first, s.free) {
		return
	}
	t := s.q.Tree.Tokens(c) - s.base - tokens
	s.free[i] = false
	s.cur = append(s.cur, i)
	s.visit(c, worth+float64(t)*s.q.Tree.worth(c, s.opt.Aging), holds&s.out.Holds(i))
	s.cur = s.cur[:len(s.cur)-1]
	s.free[i] = true
}

// young is the age in requests below which nothing has been evicted from any cache worth having.
const young = 50

// worth returns what a resident token at n is worth, 0…1: less if it must be loaded from another tier, and less the
// longer it was not sent, as the engine's cache, whose size is not known, may have dropped it. Each doubling of the
// age costs the same, as if all orders of magnitude were equally likely sizes.
func (v View) worth(n Node, aging float64) float64 {
	age, tier := v.t.Recent(n)
	w := 1.0
	if tier != 0 {
		w = 1 - v.LoadCost(n)
	}
	if aging > 0 && age > 0 {
		w *= max(1-aging*doublings(age), minWorth)
	}
	return w
}

// doublings returns log2(1 + age/young), to a tenth.
func doublings(age int) float64 {
	x := uint(young+age) << 4
	n := bits.Len(x) - 1
	return float64(n) + float64(x)/float64(uint(1)<<n) - 1 - log2Young
}

// log2Young is the logarithm of young << 4, made in the same way.
const log2Young = 9.5625

// minWorth is what is left of a token's worth at any age: an idle engine evicts nothing.
const minWorth = 0.4

// positions finds a request's blocks by key: open addressing, at most half full.
type positions struct {
	slots []position
	mask  uint64
}

type position struct {
	key Key
	at  int32 // position + 1, 0: free
}

func (p *positions) reset(n int) {
	size := 8
	for size < 2*n {
		size *= 2
	}
	p.slots = append(p.slots[:0], make([]position, size)...)
	p.mask = uint64(size - 1)
}

func (p *positions) put(k Key, at int) {
	i := uint64(k) & p.mask
	for p.slots[i].at != 0 {
		i = (i + 1) & p.mask
	}
	p.slots[i] = position{key: k, at: int32(at) + 1}
}

func (p *positions) get(k Key) int {
	for i := uint64(k) & p.mask; p.slots[i].at != 0; i = (i + 1) & p.mask {
		if p.slots[i].key == k {
			return int(p.slots[i].at) - 1
		}
	}
	return -1
}

// OrderBatch merges the requests bottom-up, see package internal/merge. Blocks behind the last shared one stand as
// retrieved.
func (b *best) OrderBatch(ctx context.Context, qs []Query) (orders [][]int, schedule []int, groups [][]int, err error) {
	n := numbering{of: map[Key]int32{}}
	sets := make([][]int32, len(qs))
	for i, q := range qs {
		sets[i] = n.set(q)
	}
	res, err := merge.Plan(ctx, sets, n.tokens, b.batch())
	if err != nil {
		return nil, nil, nil, fmt.Errorf("merge %d requests: %w", len(qs), err)
	}
	return wide(res.Orders), res.Schedule, res.Groups, nil
}

// OrderStream merges part by part.
func (b *best) OrderStream(ctx context.Context, n int, query func(i int) Query) iter.Seq2[StreamPart, error] {
	return func(yield func(StreamPart, error) bool) {
		blocks := numbering{of: map[Key]int32{}}
		for i := range n {
			if err := ctx.Err(); err != nil {
				yield(StreamPart{}, err)
				return
			}
			blocks.set(query(i))
		}
		set := func(i int) []int32 { return blocks.set(query(i)) }
		for part, err := range merge.Stream(ctx, n, set, blocks.tokens, b.batch()) {
			if err != nil {
				yield(StreamPart{}, fmt.Errorf("merge %d requests: %w", n, err))
				return
			}
			out := StreamPart{Orders: wide(part.Orders), Schedule: part.Schedule, Groups: part.Groups}
			for _, r := range part.Requests {
				out.Requests = append(out.Requests, int(r))
			}
			if !yield(out, nil) {
				return
			}
		}
	}
}

func (b *best) batch() merge.Options {
	o := merge.Options{Effort: b.opt.BatchEffort, Partition: b.opt.Partition, Seed: b.opt.Seed}
	if b.opt.BatchTime > 0 {
		o.Deadline = time.Now().Add(b.opt.BatchTime)
	}
	return o
}

// numbering numbers the blocks of a batch.
type numbering struct {
	of     map[Key]int32
	tokens []int32 // by number
}

func (n *numbering) set(q Query) []int32 {
	set := make([]int32, len(q.Blocks))
	for i, c := range q.Blocks {
		d, ok := n.of[c.Key]
		if !ok {
			d = int32(len(n.tokens))
			n.of[c.Key] = d
			n.tokens = append(n.tokens, int32(c.Tokens))
		}
		set[i] = d
	}
	return set
}

func wide(orders [][]int32) [][]int {
	out := make([][]int, len(orders))
	for i, o := range orders {
		out[i] = make([]int, len(o))
		for j, at := range o {
			out[i][j] = int(at)
		}
	}
	return out
}
