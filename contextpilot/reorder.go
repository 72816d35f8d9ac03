package contextpilot

import (
	"fmt"
	"slices"

	"github.com/ragpilot/ragpilot/contextpilot/internal/tree"
)

// reorder asks the policy. The scope's lock is held.
func (p *Pilot) reorder(sc *scope, d *draft) error {
	if err := sc.take(d, sc.policy.Order(sc.order[:0], sc.query(d))); err != nil {
		return err
	}
	if r, ok := sc.policy.(reasoner); ok {
		d.plan.Why = r.Why()
	}
	p.nearest(d, func(order []int) int { return sc.inFront(d, order) })
	sc.foretell(d)
	return nil
}

// peek is reorder for a draft that is not going to be sent. The scope's lock is held.
func (p *Pilot) peek(sc *scope, d *draft) (familiar int, err error) {
	var order []int
	if peeking, ok := sc.policy.(peeker); ok {
		order, familiar = peeking.Peek(sc.order[:0], sc.query(d))
	} else {
		order = sc.policy.Order(sc.order[:0], sc.query(d))
	}
	if err := sc.take(d, order); err != nil {
		return 0, err
	}
	p.nearest(d, func(order []int) int { return sc.inFront(d, order) })
	sc.foretell(d)
	return familiar, nil
}

// take checks the policy's order and sets it.
func (sc *scope) take(d *draft, order []int) error {
	sc.order = order
	if !permutation(order, len(d.free), &sc.seen) {
		return fmt.Errorf("policy %s: order %v of %d blocks", sc.name, order, len(d.free))
	}
	d.setOrder(order)
	return nil
}

// setOrder takes the policy's order, which is of positions in free; it is corrected where it breaks a limit.
func (d *draft) setOrder(order []int) {
	d.gate.keep(order)
	d.order = append(d.order[:0], d.pinned...)
	for _, j := range order {
		d.order = append(d.order, d.free[j])
	}
	d.order = append(d.order, d.last...)
}

// query is valid until the next call.
func (sc *scope) query(d *draft) Query {
	sc.cands = d.query(sc.cands[:0])
	q := Query{
		Request: d.plan.RequestID, Blocks: sc.cands, Tree: View{t: sc.tree, tiers: sc.tiers}, From: Root,
		continued: len(d.start) > 0, careful: sc.careful, gate: d.gate,
	}
	if len(d.start)+len(d.pinned) > 0 {
		front := sc.pathOf(d, d.pinned)
		n, steps, _ := sc.tree.Walk(front)
		if q.From = n; steps < len(front) {
			q.From = NoNode
		}
	}
	return q
}

// pathOf returns the path of a prompt that goes on with these blocks behind what precedes them; valid until the next
// call.
func (sc *scope) pathOf(d *draft, blocks []int) []tree.Elem {
	sc.path = append(sc.path[:0], d.start...)
	for _, i := range blocks {
		sc.path = append(sc.path, tree.Elem{Key: uint64(d.ids[i].key), Tokens: d.tokens[i]})
	}
	return sc.path
}

// resident returns the number of prompt tokens that are expected to be in the cache if the draft's blocks are sent in this order: in whole
// engine blocks at its beginning, and behind them with Config.Recompute.
func (sc *scope) resident(d *draft, order []int) int {
	tokens, found := sc.walk(d, order)
	return tokens + sc.anywhere(sc.path, found)
}

// inFront is resident without what is found behind the beginning of the prompt: an order does not depend on that.
func (sc *scope) inFront(d *draft, order []int) int {
	tokens, _ := sc.walk(d, order)
	return tokens
}

// walk returns how much of a prompt's beginning is resident: with its head in whole engine blocks, and of its path, which sc.path is.
func (sc *scope) walk(d *draft, order []int) (tokens, found int) {
	front := sc.pathOf(d, order)
	if sc.head >= 0 {
		_, _, found = sc.tree.Walk(front)
		tokens = found + d.head
	}
	return tokens - tokens%sc.block, found
}

// anywhere returns how many tokens of a path behind those that are resident need not be computed, since they are of blocks that were
// sent before.
func (sc *scope) anywhere(path []tree.Elem, resident int) (tokens int) {
	if sc.sent == nil {
		return 0
	}
	at := 0
	for _, e := range path {
		from := max(at, resident)
		if at += int(e.Tokens); at > from && sc.sent.Has(e.Key) {
			tokens += int(sc.kept * float64(at-from))
		}
	}
	return tokens
}

// foretell fills in what the order gains over retrieval order.
func (sc *scope) foretell(d *draft) {
	d.plan.Why.Plain = sc.resident(d, d.place)
	d.gain = sc.resident(d, d.order) - d.plan.Why.Plain
}

// foretold is foretell without the scope's lock held.
func (sc *scope) foretold(d *draft) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.foretell(d)
}

// positions returns the order of the blocks that the policy placed, as positions in its query; valid until the
// next call.
func (sc *scope) positions(d *draft) []int {
	sc.at = append(sc.at[:0], make([]int, len(d.plan.req.Blocks))...)
	for p, i := range d.free {
		sc.at[i] = p
	}
	sc.order = sc.order[:0]
	for _, i := range d.order[len(d.pinned) : len(d.order)-len(d.last)] {
		sc.order = append(sc.order, sc.at[i])
	}
	return sc.order
}

// permutation reports whether order holds 0…n−1 once each. seen is scratch.
func permutation(order []int, n int, seen *[]bool) bool {
	if len(order) != n {
		return false
	}
	*seen = append((*seen)[:0], make([]bool, n)...)
	for _, i := range order {
		if i < 0 || i >= n || (*seen)[i] {
			return false
		}
		(*seen)[i] = true
	}
	return true
}

func identity(dst []int, n int) []int {
	dst = slices.Grow(dst, n)
	for i := range n {
		dst = append(dst, i)
	}
	return dst
}
