package order

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
)

// search improves the orders in a trie, byte for byte.
type search struct {
	t      *trie
	ctx    context.Context
	rnd    *rand.Rand
	budget int // steps
	f      finder
	buf    []int32

	places []place // all units of all rows, sorted by text
	at     []int32 // by row and position in its set, from base: the index in places
	base   []int32 // by row
	cut    []taken
	old    []int32 // orders of the rows in cut
}

// place is one unit of a row.
type place struct{ unit, row int32 }

type taken struct {
	row  int32
	hint int32 // a unit that another row in cut has, or one like it
}

// How the search goes about it. Found by trying on generated tables; none is critical.
const (
	sweeps    = 6
	mostGroup = 200 // rows moved at once
	ruined    = 5   // mean number of rows taken out
	reach     = 6   // how far rows that are like another are looked for
	hot       = 0.6
	cold      = 0.05
)

func newSearch(ctx context.Context, t *trie, seed uint64, budget int) *search {
	s := &search{t: t, ctx: ctx, rnd: rand.New(rand.NewPCG(seed, 1)), budget: budget}
	s.f.t = t
	return s
}

func (s *search) spent() bool { return s.t.steps >= s.budget }

// run improves until the budget is spent.
func (s *search) run() error {
	for range sweeps {
		before := s.t.cost
		if err := s.rows(); err != nil {
			return err
		}
		if err := s.groups(); err != nil {
			return err
		}
		if s.t.cost == before || s.spent() {
			break
		}
	}
	if s.spent() {
		return nil
	}
	return s.ruin()
}

// rows takes out every row and puts it where it shares most.
func (s *search) rows() error {
	for i, r := range s.rnd.Perm(len(s.t.order)) {
		if i&63 == 0 {
			if err := s.ctx.Err(); err != nil {
				return err
			}
			if s.spent() {
				return nil
			}
		}
		s.move(int32(r))
	}
	return nil
}

func (s *search) move(r int32) {
	t := s.t
	had := t.depth(t.leaf[r])
	t.remove(r)
	s.f.find(t.order[r])
	if s.f.deep > had {
		s.set(r)
	}
	t.insert(r)
}

// set gives a row the order found.
func (s *search) set(r int32) {
	s.buf = s.f.arrange(s.buf[:0])
	copy(s.t.order[r], s.buf)
}

// groups takes out all rows that share a beginning, and orders its units anew.
func (s *search) groups() error {
	t := s.t
	var heads []place // a row, and the number of its units that are above a node with several children
	var walk func(v, depth int32)
	walk = func(v, depth int32) {
		depth += t.nodes[v].len
		if v != 0 && t.nodes[v].kids > 1 {
			r := t.below(v)
			n, sum := 0, int32(0)
			for _, u := range t.order[r] {
				if sum += int32(len(t.text[u])); sum > depth {
					break
				}
				n++
			}
			if n > 1 && (len(heads) == 0 || heads[len(heads)-1] != place{int32(n), r}) {
				heads = append(heads, place{int32(n), r})
			}
		}
		for c := t.nodes[v].kid; c != none; c = t.nodes[c].next {
			walk(c, depth)
		}
	}
	walk(0, 0)
	s.rnd.Shuffle(len(heads), func(a, b int) { heads[a], heads[b] = heads[b], heads[a] })
	for i, h := range heads {
		if i&15 == 0 {
			if err := s.ctx.Err(); err != nil {
				return err
			}
			if s.spent() {
				return nil
			}
		}
		s.regroup(h.row, int(h.unit))
	}
	return nil
}

// below returns a row below v.
func (t *trie) below(v int32) int32 {
	for t.nodes[v].kid != none {
		v = t.nodes[v].kid
	}
	return t.nodes[v].row
}

// regroup moves all rows that begin with the same n units as r.
func (s *search) regroup(r int32, n int) {
	t := s.t
	head := slices.Clone(t.order[r][:n])
	place := top
	for _, u := range head {
		_, place = t.follow(place, u)
	}
	s.cut = s.cut[:0]
	if !s.collect(place.v, head) || len(s.cut) < 2 {
		return
	}
	before := t.cost
	s.remove()
	had := int32(0)
	for place, i := top, 0; i < n; i++ {
		k, end := t.follow(place, head[i])
		had += k
		place = end
		if int(k) < len(t.text[head[i]]) {
			break
		}
	}
	s.f.find(head)
	if s.f.deep <= had {
		for _, c := range s.cut {
			t.insert(c.row)
		}
		return
	}
	s.buf = s.f.arrange(s.buf[:0])
	for _, c := range s.cut {
		copy(t.order[c.row], s.buf)
		t.insert(c.row)
	}
	if t.cost > before {
		s.undo()
	}
}

// collect adds the rows below v that begin with head to cut; false if they are too many.
func (s *search) collect(v int32, head []int32) bool {
	x := &s.t.nodes[v]
	s.t.steps++
	if x.kid == none {
		if order := s.t.order[x.row]; len(order) >= len(head) && slices.Equal(order[:len(head)], head) {
			s.cut = append(s.cut, taken{x.row, none})
		}
		return len(s.cut) <= mostGroup
	}
	for c := x.kid; c != none; c = s.t.nodes[c].next {
		if !s.collect(c, head) {
			return false
		}
	}
	return true
}

// remove takes out the rows in cut and remembers their orders.
func (s *search) remove() {
	s.old = s.old[:0]
	for _, c := range s.cut {
		s.old = append(s.old, s.t.order[c.row]...)
		s.t.remove(c.row)
	}
}

// undo gives the rows in cut the orders that they had.
func (s *search) undo() {
	for _, c := range s.cut {
		s.t.remove(c.row)
	}
	old := s.old
	for _, c := range s.cut {
		n := copy(s.t.order[c.row], old)
		old = old[n:]
		s.t.insert(c.row)
	}
}

// ruin takes out rows that are like each other and puts them back one by one, and keeps the change if it is better or, while the search
// is young, a little worse. The best orders are kept.
func (s *search) ruin() error {
	t := s.t
	s.index()
	if len(s.places) == 0 {
		return nil
	}
	from := t.steps
	best, keep := t.cost, cloneOrders(t.order)
	var changed []int32 // rows since keep
	temp := 0.0
	for i := 0; ; i++ {
		if i&15 == 0 {
			if err := s.ctx.Err(); err != nil {
				return err
			}
			p := float64(t.steps-from) / float64(s.budget-from)
			if p >= 1 {
				break
			}
			temp = hot * math.Pow(cold/hot, p)
		}
		before := t.cost
		s.choose()
		s.rnd.Shuffle(len(s.cut), func(a, b int) { s.cut[a], s.cut[b] = s.cut[b], s.cut[a] })
		s.remove()
		for _, c := range s.cut {
			s.put(c)
		}
		if float64(t.cost-before) >= temp*s.rnd.ExpFloat64() {
			s.undo()
			continue
		}
		for _, c := range s.cut {
			changed = append(changed, c.row)
		}
		if t.cost < best {
			best = t.cost
			for _, r := range changed {
				copy(keep[r], t.order[r])
			}
			changed = changed[:0]
		}
	}
	for _, r := range changed {
		t.remove(r)
		copy(t.order[r], keep[r])
		t.insert(r)
	}
	return nil
}

// put inserts a row where it shares most. Of the units that are not there, the hint goes first now and then.
func (s *search) put(c taken) {
	s.f.find(s.t.order[c.row])
	s.set(c.row)
	order := s.t.order[c.row]
	if n := len(s.f.best); n < len(order) && c.hint != none && s.rnd.IntN(2) == 0 {
		if n > 0 && s.rnd.IntN(4) == 0 {
			n--
		}
		for k, u := range order[n:] {
			if u == c.hint {
				copy(order[n+1:], order[n:n+k])
				order[n] = u
				break
			}
		}
	}
	s.t.insert(c.row)
}

// choose fills cut with rows that have like units.
func (s *search) choose() {
	s.cut = s.cut[:0]
	first := s.rnd.IntN(len(s.t.order))
	s.cut = append(s.cut, taken{int32(first), none})
	n := 1 + s.rnd.IntN(2*ruined-1)
	for tries := 0; len(s.cut) < n && tries < 2*n; tries++ {
		c := s.rnd.IntN(len(s.cut))
		r := s.cut[c].row
		k := int(s.base[r+1] - s.base[r])
		if k == 0 {
			return
		}
		i := s.at[int(s.base[r])+s.rnd.IntN(k)]
		j := int(i) + 1 + s.rnd.IntN(reach)
		if s.rnd.IntN(2) == 0 {
			j = 2*int(i) - j
		}
		if j < 0 || j >= len(s.places) {
			continue
		}
		p := s.places[j]
		if slices.ContainsFunc(s.cut, func(c taken) bool { return c.row == p.row }) {
			continue
		}
		s.cut[c].hint = s.places[i].unit
		s.cut = append(s.cut, taken{p.row, p.unit})
	}
}

// index sorts the units of all rows by text.
func (s *search) index() {
	t := s.t
	s.base = make([]int32, len(t.order)+1)
	rank := rankTexts(t.text)
	for r, order := range t.order {
		for _, u := range order {
			if len(t.text[u]) > 0 {
				s.places = append(s.places, place{u, int32(r)})
			}
		}
		s.base[r+1] = int32(len(s.places))
	}
	slices.SortFunc(s.places, func(a, b place) int {
		return cmp.Or(cmp.Compare(rank[a.unit], rank[b.unit]), cmp.Compare(a.row, b.row))
	})
	s.at = make([]int32, len(s.places))
	fill := slices.Clone(s.base)
	for i, p := range s.places {
		s.at[fill[p.row]] = int32(i)
		fill[p.row]++
	}
}

// rankTexts returns the place of each text among all, sorted.
func rankTexts(text [][]byte) []int32 {
	by := make([]int32, len(text))
	for i := range by {
		by[i] = int32(i)
	}
	slices.SortFunc(by, func(a, b int32) int { return bytes.Compare(text[a], text[b]) })
	rank := make([]int32, len(text))
	for i, u := range by {
		rank[u] = int32(i)
	}
	return rank
}

func cloneOrders(orders [][]int32) [][]int32 {
	out := make([][]int32, len(orders))
	for i, o := range orders {
		out[i] = slices.Clone(o)
	}
	return out
}
