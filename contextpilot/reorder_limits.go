package contextpilot

import (
	"cmp"
	"fmt"
	"slices"
)

// Limits bound how far an order may depart from the retriever's. They hold for every policy; `best` looks for paths
// that keep them, the orders of others are corrected. Each costs reuse: docs/results.md has the measured price.
// They concern the blocks that are sent in full: "rank" and "first" mean among these. References stand behind them.
// The zero value limits nothing.
type Limits struct {
	// MaxDisplacement is the number of places that a block may stand before or behind its rank. 0: no limit.
	MaxDisplacement int
	// Pin keeps the first n blocks in front, in retrieval order.
	Pin int
	// KeepTopAtEnd puts the first n blocks at the end, the best one last, next to the question. It cannot be
	// combined with other limits.
	KeepTopAtEnd int
	// Group, if not nil, returns the document that a block is part of and its place there. Blocks of one document stay
	// in reading order: in the places that they hold, whichever these are. Ranks are those after that correction.
	// Equal names are one document, the empty one too.
	Group func(Block) (document string, place int)
}

func (l Limits) set() bool {
	return l.MaxDisplacement > 0 || l.Pin > 0 || l.KeepTopAtEnd > 0 || l.Group != nil
}

func (l Limits) check() error {
	for _, f := range []struct {
		name  string
		value int
	}{{"MaxDisplacement", l.MaxDisplacement}, {"Pin", l.Pin}, {"KeepTopAtEnd", l.KeepTopAtEnd}} {
		if f.value < 0 {
			return fmt.Errorf("%w: Limits.%s %d is negative", ErrBadConfig, f.name, f.value)
		}
	}
	if l.KeepTopAtEnd > 0 && (l.MaxDisplacement > 0 || l.Pin > 0 || l.Group != nil) {
		return fmt.Errorf("%w: Limits.KeepTopAtEnd %d together with another limit", ErrBadConfig, l.KeepTopAtEnd)
	}
	return nil
}

// split separates the draft's blocks that the policy places from pinned ones, and sets what its order must keep.
func (l Limits) split(d *draft) {
	d.pinned, d.last, d.gate = nil, nil, gate{displace: l.MaxDisplacement}
	d.free = d.place
	switch {
	case d.plan.req.Fixed:
		d.pinned, d.free = d.place, d.place[len(d.place):]
	case l.KeepTopAtEnd > 0:
		n := min(l.KeepTopAtEnd, len(d.place))
		d.last = slices.Clone(d.place[:n])
		slices.Reverse(d.last)
		d.free = d.place[n:]
	case l.Group != nil:
		d.free, d.gate.before = l.reading(d)
		fallthrough
	case l.Pin > 0:
		n := min(l.Pin, len(d.place))
		d.pinned, d.free = d.free[:n], d.free[n:]
		if d.gate.before != nil {
			d.gate.before = d.gate.before[n:]
			for i := range d.gate.before {
				d.gate.before[i] = max(d.gate.before[i]-n, -1)
			}
		}
	}
}

// reading returns the blocks with each document's in reading order in the places they hold, and by position that
// of the block of the same document before it, or −1.
func (l Limits) reading(d *draft) (order, before []int) {
	type part struct{ block, place, slot int }
	parts := map[string][]part{}
	var docs []string
	for slot, i := range d.place {
		doc, place := l.Group(d.plan.req.Blocks[i])
		if parts[doc] == nil {
			docs = append(docs, doc)
		}
		parts[doc] = append(parts[doc], part{i, place, slot})
	}
	order, before = make([]int, len(d.place)), make([]int, len(d.place))
	for _, doc := range docs {
		sorted := slices.Clone(parts[doc])
		slices.SortStableFunc(sorted, func(a, b part) int { return cmp.Compare(a.place, b.place) })
		last := -1
		for n, p := range parts[doc] {
			order[p.slot], before[p.slot] = sorted[n].block, last
			last = p.slot
		}
	}
	return order, before
}

// gate is what a policy's order must keep. Positions are those of Query.Blocks.
type gate struct {
	displace int   // 0: no limit
	before   []int // by position: the block that must have its place before; −1: none. nil: no groups
}

// open reports whether the block at position i may come next, in place depth; free are the blocks without a place, first
// is the first of them, which cannot wait longer than to first + displace.
func (g gate) open(i, depth, first int, free []bool) bool {
	if g.before != nil && g.before[i] >= 0 && free[g.before[i]] {
		return false
	}
	return g.displace == 0 || i-depth <= g.displace && (i == first || depth-first < g.displace)
}

// keep corrects an order of positions, in place. O(n²) at worst with groups or a displacement, nothing without.
func (g gate) keep(order []int) {
	if g.before == nil && g.displace == 0 {
		return
	}
	free := make([]bool, len(order))
	for i := range free {
		free[i] = true
	}
	wanted := slices.Clone(order)
	first := 0
	for depth := range order {
		for !free[first] {
			first++
		}
		// There is always one: the first free block, if nothing else.
		at := slices.IndexFunc(wanted, func(i int) bool { return g.open(i, depth, first, free) })
		order[depth] = wanted[at]
		free[wanted[at]] = false
		wanted = slices.Delete(wanted, at, at+1)
	}
}
