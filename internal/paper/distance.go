package paper

import "slices"

// Doc is a context block as a small dense integer.
type Doc int32

// Distance is ContextPilot's Eq. 1: 1 − |S|/max(|a|,|b|) + alpha · mean over S of |pos in a − pos in b|, where S
// are the shared docs. It is 1 when nothing is shared. A doc that stands in a context twice counts in the
// length and has its last position.
func Distance(a, b []Doc, alpha float64) float64 {
	var p positions
	p.load(b)
	d, _ := p.distance(a, len(b), alpha)
	return d
}

// positions answers "where in the loaded context is this doc" in O(1): its last position. load costs O(len(context)).
// Beside it positions keeps a set of docs, which begins empty after begin.
type positions struct {
	at   []int32 // doc → position, valid only if mark[doc] is cur
	mark []uint32
	cur  uint32
	met  []uint32 // doc → the round in which it was put into the set
	set  uint32   // the current round
}

func (p *positions) load(c []Doc) {
	p.cur++
	if p.cur == 0 { // wrapped: old marks could look current
		clear(p.mark)
		p.cur = 1
	}
	for i, d := range c {
		p.grow(d)
		p.at[d], p.mark[d] = int32(i), p.cur
	}
}

func (p *positions) grow(d Doc) {
	if int(d) < len(p.at) {
		return
	}
	n := max(int(d)+1, 2*len(p.at), 64)
	p.at = append(p.at, make([]int32, n-len(p.at))...)
	p.mark = append(p.mark, make([]uint32, n-len(p.mark))...)
	p.met = append(p.met, make([]uint32, n-len(p.met))...)
}

// begin empties the set.
func (p *positions) begin() {
	p.set++
	if p.set == 0 {
		clear(p.met)
		p.set = 1
	}
}

// has reports whether d, a doc of the loaded context, is in the set.
func (p *positions) has(d Doc) bool { return p.met[d] == p.set }

func (p *positions) put(d Doc) { p.met[d] = p.set }

func (p *positions) take(d Doc) { p.met[d] = 0 }

func (p *positions) find(d Doc) (int32, bool) {
	if int(d) >= len(p.mark) || p.mark[d] != p.cur {
		return 0, false
	}
	return p.at[d], true
}

// distance is ContextPilot's Eq. 1 between c and the loaded context of n docs: 1 − |S|/max(|a|,|b|) + alpha · mean over S of
// |pos in a − pos in b|, where S are the shared docs, and shared is |S|. It is 1 when nothing is shared. A doc that stands in a context
// twice counts in the length and has its last position.
func (p *positions) distance(c []Doc, n int, alpha float64) (d float64, shared int) {
	gap := 0
	p.begin()
	for i, x := range slices.Backward(c) {
		j, ok := p.find(x)
		if !ok || p.has(x) { // it stands in c again behind i
			continue
		}
		p.put(x)
		shared++
		gap += abs(i - int(j))
	}
	if shared == 0 {
		return 1, 0
	}
	return eq1(shared, max(n, len(c)), gap, alpha), shared
}

func eq1(shared, longest, gap int, alpha float64) float64 {
	s := float64(shared)
	return 1 - s/float64(longest) + alpha*(float64(gap)/s)
}

func abs(x int) int {
	if x < 0 {
		return -x
	}
	return x
}
