package contextpilot

import (
	"fmt"
	"slices"

	"github.com/ragpilot/ragpilot/contextpilot/internal/tree"
)

// Stages in the order they run. The blocks that a conversation has shown are taken out first, so that a policy
// orders only what is sent.
const (
	stageIndex    = "index"
	stageDedup    = "dedup"
	stageReorder  = "reorder"
	stageAnnotate = "annotate"
)

// guard runs one stage; an error or a panic in it becomes a fault of that stage, which is counted.
func (p *Pilot) guard(stage string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
		if err != nil {
			p.stats.fault(stage)
			err = fmt.Errorf("%w: %s: %w", ErrFault, stage, err)
		}
	}()
	if p.inject != nil {
		if err := p.inject(stage); err != nil {
			return err
		}
	}
	return f()
}

// unknown puts a step of the request's own in front of a draft whose history could not be looked at: nothing is shared
// behind it. Later turns may refer to what it shows.
func (d *draft) unknown(req *Request) {
	if d.fits = false; len(req.Prior) > 0 {
		d.start = append(d.start[:0], tree.Elem{Key: ownKey(d.plan.RequestID)})
		d.visible = visibleIn(req.Prior)
	}
}

// look compares what the turns in front have shown with what is really being sent.
func (d *draft) look(prior []string, p *Pilot) {
	d.start, d.fits, d.visible, d.shown = d.start[:0], false, visible{}, nil
	if len(prior) == 0 {
		return
	}
	if last := d.behind.last; last != nil {
		d.fits = true
		if last.blocks > 0 {
			d.visible = visibleIn(prior)
			d.see(p.cfg.Dedup)
		}
	}
	if d.fits {
		d.start = d.behind.path(d.start)
	} else { // a history that the index has not seen: nothing can be shared behind it
		d.start = append(d.start, unseen(prior, p.cfg.Tokenizer.Count))
	}
}

// see finds the request's blocks among those that were shown and are visible, and notes whether all of these are.
func (d *draft) see(dedup Dedup) {
	own := make(map[content]bool, len(d.ids))
	for i := range d.ids {
		own[d.ids[i].mark] = true
	}
	d.shown = map[content]shownBlock{}
	for b := range d.behind.shown() {
		x, ok := d.visible.blocks[b.key]
		if !ok {
			d.fits = false
			continue
		}
		if mark := markOf(x.label, x.text, x.content, dedup); own[mark] {
			own[mark] = false // the last one counts
			d.shown[mark] = b
		}
	}
}

// end returns the position behind the draft's prompt, whose path is given.
func (d *draft) end(path []tree.Elem) Position {
	if !d.fits {
		d.behind = d.seen()
	}
	s := d.behind.next()
	s.path, s.sent = slices.Clone(path[len(d.start):]), len(d.order)
	s.turn, s.request = d.plan.Turn, d.plan.RequestID
	return s.position()
}

// seen returns the position behind a history that does not show all that the turns up to there have shown.
func (d *draft) seen() Position {
	if len(d.start) == 0 {
		return Position{}
	}
	s := &segment{depth: 1, path: slices.Clone(d.start)}
	for b := range d.behind.shown() {
		if d.visible.has(b.key) {
			s.kept = append(s.kept, b)
		}
	}
	slices.Reverse(s.kept)
	return s.position()
}

// index gives blocks their identity, leaves out repeats, and finds out what stands in front of them.
func (p *Pilot) index(d *draft, req *Request) error {
	d.ids = identify(d.ids, d.plan.req.Blocks, p.cfg.Dedup)
	d.tokens = slices.Grow(d.tokens[:0], len(d.ids))[:len(d.ids)]
	clear(d.tokens)
	for i, b := range d.plan.req.Blocks {
		n := b.Tokens
		if n <= 0 {
			n = p.cfg.Tokenizer.Count(b.Text)
		}
		d.tokens[i] = tokenCount(n)
	}
	d.closeWith(req.Query, p.cfg.Tokenizer.Count)
	d.look(req.Prior, p)
	d.place = d.place[:0]
	repeated := d.repeated()
	for i := range d.plan.req.Blocks {
		if j := repeated(i); j >= 0 {
			d.plan.LeftOut = append(d.plan.LeftOut, LeftOut{Index: i, Reason: Duplicate, Same: j})
			continue
		}
		d.place = append(d.place, i)
	}
	return nil
}

// fewBlocks is the number of blocks up to which looking at all of them is cheaper than a table.
const fewBlocks = 64

// repeated returns what tells which of the blocks in place is the same block as i, or −1. It is asked for all blocks in turn.
func (d *draft) repeated() func(i int) int {
	blocks := d.plan.req.Blocks
	if len(blocks) <= fewBlocks {
		return func(i int) int {
			for _, j := range d.place {
				if d.ids[i].mark == d.ids[j].mark && blocks[i].Text == blocks[j].Text {
					return j
				}
			}
			return -1
		}
	}
	last := make(map[content]int, len(blocks)) // by mark
	before := make([]int, len(blocks))         // the one before it of the same mark, or −1
	return func(i int) int {
		first, ok := last[d.ids[i].mark]
		if !ok {
			first = -1
		}
		for j := first; j >= 0; j = before[j] {
			if blocks[i].Text == blocks[j].Text {
				return j
			}
		}
		last[d.ids[i].mark], before[i] = i, first
		return -1
	}
}

// dedup turns blocks that the messages already show into references. A label that names two texts in the
// messages, or another text in this request, would point nowhere in particular: such a block is sent again.
func (p *Pilot) dedup(d *draft) error {
	if p.cfg.Dedup == DedupOff || len(d.shown) == 0 {
		return nil
	}
	renamed := d.renamed()
	d.place = slices.DeleteFunc(d.place, func(i int) bool {
		b, ok := d.shown[d.ids[i].mark]
		if !ok {
			return false
		}
		x := d.visible.blocks[b.key]
		if x.text != d.plan.req.Blocks[i].Text || d.visible.many[x.label] > 1 || renamed(x.label, x.content) {
			return false
		}
		d.refs = append(d.refs, Item{Index: i, Label: d.ids[i].label, Ref: &Ref{Label: x.label, Turn: b.turn, RequestID: b.request}})
		return true
	})
	return nil
}

// renamed returns what reports whether the request has a block of a label with another text.
func (d *draft) renamed() func(label string, c content) bool {
	if len(d.ids) <= fewBlocks {
		return func(label string, c content) bool {
			return slices.ContainsFunc(d.ids, func(x identified) bool { return x.label == label && x.content != c })
		}
	}
	type texts struct {
		first content
		more  bool
	}
	of := make(map[string]texts, len(d.ids))
	for i := range d.ids {
		x, ok := of[d.ids[i].label]
		if !ok {
			x.first = d.ids[i].content
		}
		x.more = x.more || x.first != d.ids[i].content
		of[d.ids[i].label] = x
	}
	return func(label string, c content) bool {
		x, ok := of[label]
		return ok && (x.more || x.first != c)
	}
}

// budget leaves out blocks that do not fit, going down the ranks.
func (d *draft) budget(limit int) {
	if limit <= 0 {
		return
	}
	used := 0
	d.place = slices.DeleteFunc(d.place, func(i int) bool {
		if used+int(d.tokens[i]) > limit {
			d.plan.LeftOut = append(d.plan.LeftOut, LeftOut{Index: i, Reason: OverBudget})
			return true
		}
		used += int(d.tokens[i])
		return false
	})
}

// reorder asks the policy. The scope's lock is held.
func (sc *scope) reorder(d *draft) error {
	if err := sc.take(d, sc.policy.Order(sc.order[:0], sc.query(d))); err != nil {
		return err
	}
	if r, ok := sc.policy.(reasoner); ok {
		d.plan.Why = r.Why()
	}
	sc.foretell(d)
	return nil
}

// peek is reorder for a draft that is not going to be sent. The scope's lock is held.
func (sc *scope) peek(d *draft) (familiar int, err error) {
	var order []int
	if p, ok := sc.policy.(peeker); ok {
		order, familiar = p.Peek(sc.order[:0], sc.query(d))
	} else {
		order = sc.policy.Order(sc.order[:0], sc.query(d))
	}
	if err := sc.take(d, order); err != nil {
		return 0, err
	}
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

// annotate adds the notes. The order note costs tokens now, while the order may pay later only: it is added if what
// this request is expected to read from the cache, beyond what retrieval order would, exceeds it.
func (p *Pilot) annotate(d *draft) error {
	n := p.cfg.Notes
	d.plan.Hint = ""
	d.items()
	if !n.NoLocation {
		for _, it := range d.refs {
			it.Ref.Note = n.location(*it.Ref)
		}
	}
	d.plan.afterQuestion = n.AfterQuestion
	if text, tokens := n.hint(d, p.cfg.Tokenizer.Count); text != "" && (n.AlwaysHint || d.gain > tokens) && d.admits(text, p.cfg.Tokenizer.Count) {
		d.plan.Hint = text
	}
	if d.plan.Hint != "" || len(d.refs) > 0 && !n.NoLocation {
		d.closeWith(d.plan.closing(), p.cfg.Tokenizer.Count)
	}
	return nil
}
