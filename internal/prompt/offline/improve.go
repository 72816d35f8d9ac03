package offline

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
)

// search improves a forest until its budget is spent.
type search struct {
	f       *forest
	ctx     context.Context
	rnd     *rand.Rand
	unit    float64   // mean weight of a block
	budget  int       // steps
	holders [][]int32 // by block: leaves that hold it
	cut     []removed
}

type removed struct {
	node   int32
	beside int32 // where it was
}

// How the search goes about it. Found by trying on recorded and generated requests; none is critical.
const (
	passes  = 12            // of regraft, at most
	size    = 6             // mean number of subtrees taken out by ruin
	climb   = 0.4           // chance to take the parent of a subtree instead
	hot     = 0.05          // accepted loss at the start, in mean blocks
	cold    = 0.004         // and at the end
	stretch = 4000          // nodes
	blink   = 1 << 32 / 100 // chance to overlook a place, of 1 << 32
)

// run improves the forest until the budget is spent.
func (s *search) run() error {
	f := s.f
	for range passes {
		gained, err := s.regraft()
		if err != nil {
			return err
		}
		if gained == 0 {
			break
		}
	}
	if s.progress() >= 1 {
		return nil
	}
	before, nodes := f.cost, f.clone()
	if err := s.ruin(); err != nil {
		return err
	}
	if f.cost > before {
		f.nodes = nodes // good for reading only: the index is not restored
	}
	return nil
}

// progress is the spent share of the budget.
func (s *search) progress() float64 { return float64(s.f.steps) / float64(s.budget) }

// tour lists all nodes but the root: stretches of the depth-first order, which fit the processor's caches, each in
// random order.
func (s *search) tour() []int32 {
	f := s.f
	order := make([]int32, 0, len(f.nodes))
	for v := f.nodes[root].kid; v != none; {
		order = append(order, v)
		switch {
		case f.nodes[v].kid != none:
			v = f.nodes[v].kid
		default:
			for v != root && f.nodes[v].next == none {
				v = f.nodes[v].up
			}
			if v == root {
				v = none
			} else {
				v = f.nodes[v].next
			}
		}
	}
	for part := range slices.Chunk(order, stretch) {
		s.rnd.Shuffle(len(part), func(a, b int) { part[a], part[b] = part[b], part[a] })
	}
	return order
}

// regraft takes every subtree out and puts it where it shares most. It returns what that gained.
func (s *search) regraft() (gained int64, err error) {
	f := s.f
	from := f.cost
	for i, v := range s.tour() {
		if i&63 == 0 {
			if err := s.ctx.Err(); err != nil {
				return 0, err
			}
			if s.progress() >= 1 {
				break
			}
		}
		if f.nodes[v].up == none {
			continue
		}
		before := f.cost
		f.begin()
		f.detach(v)
		had := f.cost - before
		place, gain := f.find(v, had)
		if gain <= had {
			f.undo()
			continue
		}
		f.attach(v, place)
		f.keep()
	}
	return from - f.cost, nil
}

// ruin takes out related subtrees and puts them back one by one, and keeps the change if it is better or, while the
// search is young, not much worse.
func (s *search) ruin() error {
	f := s.f
	t0 := s.progress()
	temp := 0.0
	var tour []int32
	for i := 0; ; i++ {
		if i&15 == 0 {
			if err := s.ctx.Err(); err != nil {
				return err
			}
			p := s.progress()
			if p >= 1 {
				return nil
			}
			p = (p - t0) / (1 - t0)
			temp = s.unit * hot * math.Pow(cold/hot, p)
		}
		before := f.cost
		f.begin()
		n := 1 + s.rnd.IntN(2*size-1)
		s.cut = s.cut[:0]
		if len(tour) == 0 {
			tour = s.tour()
		}
		s.take(tour[0])
		tour = tour[1:]
		for tries := 0; len(s.cut) > 0 && len(s.cut) < n && tries < 2*n; tries++ {
			set := f.nodes[s.cut[s.rnd.IntN(len(s.cut))].node].seg
			if len(set) == 0 {
				continue
			}
			l := s.holders[set[s.rnd.IntN(len(set))]]
			s.take(l[s.rnd.IntN(len(l))])
		}
		s.rnd.Shuffle(len(s.cut), func(a, b int) { s.cut[a], s.cut[b] = s.cut[b], s.cut[a] })
		f.at.blink = blink
		for _, c := range s.cut {
			place, _ := f.findSet(f.nodes[c.node].seg, c.beside, 0)
			f.attach(c.node, place)
		}
		f.at.blink = 0
		if float64(f.cost-before) < temp*s.rnd.ExpFloat64() {
			f.keep()
		} else {
			f.undo()
		}
	}
}

// take detaches a leaf or a subtree around it.
func (s *search) take(v int32) {
	f := s.f
	for f.nodes[v].up > 0 && s.rnd.Float64() < climb {
		v = f.nodes[v].up
	}
	for a := v; a != root; a = f.nodes[a].up {
		if f.nodes[a].up == none {
			return // part of what was taken out already
		}
	}
	s.cut = append(s.cut, removed{v, f.detach(v)})
}
