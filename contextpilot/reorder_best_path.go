package contextpilot

import (
	"math/bits"
	"slices"

	"github.com/ragpilot/ragpilot/contextpilot/internal/online"
)

// pathSearch looks for the best resident path that is made of a request's blocks only. Depth first and exact, unless
// the bound on visits is reached.
type pathSearch struct {
	q      Query
	out    *online.Outlook
	opt    bestOptions
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

func (s *pathSearch) run(q Query, out *online.Outlook, opt bestOptions) []int {
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
func (s *pathSearch) visit(n Node, worth float64, holds online.Mask) {
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

func (s *pathSearch) step(c Node, i, tokens int, worth float64, holds online.Mask) {
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
