package contextpilot

import (
	"slices"
)

// fit leaves out what does not fit Request.Room, going down the ranks: blocks in full, and references with their location
// notes. What remains of the room is kept for the order note. The parts of a turn end with line feeds, so the turn has
// no more tokens than its parts together.
func (d *draft) fit(n *Notes, count func(string) int) {
	if d.plan.req.Room == 0 {
		return
	}
	room := d.plan.req.Room - count(d.plan.req.Query)
	takes := func(i, tokens int) bool {
		if tokens > room {
			d.plan.LeftOut = append(d.plan.LeftOut, LeftOut{Index: i, Reason: OverWindow})
			return false
		}
		room -= tokens
		return true
	}
	full, refs := d.place, d.refs
	d.place, d.refs = d.place[:0], d.refs[:0]
	for len(full)+len(refs) > 0 {
		if len(refs) == 0 || len(full) > 0 && full[0] < refs[0].Index {
			if i := full[0]; takes(i, d.rendered(i, count)) {
				d.place = append(d.place, i)
			}
			full = full[1:]
			continue
		}
		tokens := 0
		if !n.NoLocation {
			tokens = count(n.location(*refs[0].Ref) + "\n")
		}
		if takes(refs[0].Index, tokens) {
			d.refs = append(d.refs, refs[0])
		}
		refs = refs[1:]
	}
	d.room = room
}

// rendered returns the tokens of block i as it stands in the prompt.
func (d *draft) rendered(i int, count func(string) int) int {
	b := &d.plan.req.Blocks[i]
	if b.Tokens > 0 {
		return b.Tokens
	}
	return count(renderBlock(d.plan.forms, d.ids[i].label, b.Text))
}

// admits reports whether the order note fits the room that the blocks and the echo have left.
func (d *draft) admits(note string, count func(string) int) bool {
	room := d.room
	if d.plan.Echo != nil {
		room -= d.plan.Echo.Tokens
	}
	return d.plan.req.Room == 0 || count(note+"\n") <= room
}

// plain makes the draft retrieval order after a fault. Budget and notes are given up, the room is not: a prompt that
// the engine refuses would be worse than none. If counting is what failed, tokens are estimated.
func (p *Pilot) plain(d *draft) {
	d.plain(p.cfg.Dedup)
	if d.plan.req.Room == 0 {
		return
	}
	if err := recovered(func() error { d.fit(&p.cfg.Notes, p.cfg.Tokenizer.Count); return nil }); err != nil {
		d.plain(p.cfg.Dedup)
		d.fit(&p.cfg.Notes, Estimate{}.Count)
	}
	d.free = d.place
	d.order = append(d.order[:0], d.place...)
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
