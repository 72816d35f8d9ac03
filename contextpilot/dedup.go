package contextpilot

import (
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/internal/prompt/markup"
)

// blockKey returns the key of a block that was found in a text, see [identify].
func blockKey(r *markup.Region) Key { return keyOf(r.Label, contentOf(r.Text)) }

// visible are the blocks that stand in messages.
type visible struct {
	blocks map[Key]seenBlock
	many   map[string]int // how many different texts each label is the name of
}

// seenBlock is a text under a label.
type seenBlock struct {
	label, text string
	content     content
}

// has reports whether the block stands there.
func (v *visible) has(k Key) bool {
	_, ok := v.blocks[k]
	return ok
}

// visibleIn returns the blocks that stand in the texts, in one pass.
func visibleIn(texts []string) (v visible) {
	var echoes []markup.Region
	for _, t := range texts {
		for r := range markup.All(t) {
			if r.Echo {
				echoes = append(echoes, r)
				continue
			}
			if v.blocks == nil {
				v = visible{blocks: map[Key]seenBlock{}, many: map[string]int{}}
			}
			c := contentOf(r.Text)
			k := keyOf(r.Label, c)
			if x, ok := v.blocks[k]; !ok {
				v.blocks[k] = seenBlock{r.Label, r.Text, c}
				v.many[r.Label]++
			} else if x.label != r.Label || x.text != r.Text { // two of one key
				v.many[r.Label]++
			}
		}
	}
	v.echoed(echoes)
	return v
}

// echoed counts an echo whose text is not in the block of its label as another text of that label, and so more of one label than
// conversations have turns: each costs a search of the block.
func (v *visible) echoed(echoes []markup.Region) {
	if len(echoes) == 0 {
		return
	}
	texts := map[string]string{} // of labels that name one text
	for _, b := range v.blocks {
		if v.many[b.label] == 1 {
			texts[b.label] = b.text
		}
	}
	looked := map[string]int{}
	for i := range echoes {
		r := &echoes[i]
		text, one := texts[r.Label]
		if !one {
			continue
		}
		if looked[r.Label]++; looked[r.Label] > maxTurns || !strings.Contains(text, r.Text) {
			v.many[r.Label]++
			delete(texts, r.Label)
		}
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

// fewBlocks is the number of blocks up to which looking at all of them is cheaper than a table.
const fewBlocks = 64

// repeated returns a function that finds the block in place that is the same as block i, or −1. It is called for all blocks in turn.
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
