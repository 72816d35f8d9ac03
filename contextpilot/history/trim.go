package history

import (
	"context"
	"slices"
)

// trim cuts the history to the low mark, or further if the new message needs more room. Messages from open on belong to a turn
// that is not over.
func (c *Chat) trim(ctx context.Context, open, needs int) (*Trim, error) {
	head := c.head()
	reserved := c.reserved()
	upTo := make([]int, len(c.items)+1) // tokens of the items in front
	for i := range c.items {
		upTo[i+1] = upTo[i] + c.items[i].tokens
	}
	size := func(k kept) int {
		n := c.fixed() + reserved + upTo[k.head] + upTo[len(c.items)] - upTo[k.tail]
		if k.alone >= 0 {
			n += c.items[k.alone].tokens
		}
		if n > c.cfg.High { // too long even before references are made whole
			return n
		}
		return n + c.wholeCost(k)
	}
	most := c.cfg.High - needs
	said := messages(c.items)
	choice := cut{
		messages: said, ok: joints(said), now: kept{head, -1, head}, open: open,
		target: min(c.cfg.Low+upTo[len(c.items)]-upTo[open], most), inner: c.cfg.Low, most: most, size: size,
	}
	k := choice.choose()

	t := &Trim{Before: c.size()}
	t.Summary = c.Summary()
	rest := c.after(k)
	t.Messages = c.gone(k)
	if err := c.summarize(ctx, t); err != nil {
		return nil, err
	}
	t.Restored = c.restore(rest, head)
	t.Forgotten = forgotten(c.items, rest)
	c.items = rest
	c.place(head)
	t.After = c.size()
	return t, nil
}

// after returns the items that a cut leaves.
func (c *Chat) after(k kept) []item {
	rest := slices.Clone(c.items[:k.head])
	if k.alone >= 0 {
		rest = append(rest, c.items[k.alone])
	}
	return append(rest, c.items[k.tail:]...)
}

// gone returns the messages that a cut takes away.
func (c *Chat) gone(k kept) []Message {
	items := slices.Clone(c.items[k.head:k.tail])
	if k.alone >= 0 {
		items = slices.Delete(items, k.alone-k.head, k.alone-k.head+1)
	}
	return messages(items)
}

// wholeCost returns the tokens that a cut adds, by blocks that take the place of references that would lead nowhere.
func (c *Chat) wholeCost(k kept) (tokens int) {
	shown := map[block]bool{}
	rest := c.after(k)
	for i := range rest {
		it := &rest[i]
		if i >= k.head {
			if missing := it.dangling(shown); missing != nil {
				tokens += c.count(it.render(missing)) - c.count(it.Text)
			}
		}
		it.show(shown)
	}
	return tokens
}

// restore makes references whole in the items behind the head and returns the labels.
func (c *Chat) restore(items []item, head int) (labels []string) {
	shown := map[block]bool{}
	for i := range items {
		it := &items[i]
		if i >= head {
			if missing := it.dangling(shown); missing != nil {
				labels = append(labels, c.makeWhole(it, missing)...)
			}
		}
		it.show(shown)
	}
	return labels
}

// makeWhole replaces references of an item by their blocks.
func (c *Chat) makeWhole(it *item, missing []bool) (labels []string) {
	it.whole = slices.Clone(it.whole)
	if it.whole == nil {
		it.whole = make([]bool, len(missing))
	}
	for i, m := range missing {
		if m {
			it.whole[i] = true
			labels = append(labels, it.plan.Items[i].Ref.Label)
		}
	}
	c.set(it, it.render(nil))
	return labels
}

// summarize replaces the summary. An error of Summarize is kept in t; one of ctx is returned.
func (c *Chat) summarize(ctx context.Context, t *Trim) error {
	if c.cfg.Summarize == nil {
		return nil
	}
	text, err := c.cfg.Summarize(ctx, t.Cut)
	if ctx.Err() != nil { // nothing is cut
		return ctx.Err()
	}
	if t.SummaryErr = err; err == nil {
		c.summary = shorten(asLines(text), c.cfg.SummaryTokens, c.count)
		c.summed = c.count(c.summary)
	}
	return nil
}

// forgotten returns how many blocks the messages do not show any more that others have shown.
func forgotten(before, now []item) int {
	gone := map[block]bool{}
	for i := range before {
		before[i].show(gone)
	}
	for i := range now {
		for _, b := range now[i].shows {
			delete(gone, b)
		}
	}
	return len(gone)
}

// place sets the positions behind the items from head on, which were moved.
func (c *Chat) place(head int) {
	for i := head; i < len(c.items); i++ {
		c.items[i].at = c.behind(end(c.items[:i]), &c.items[i], c.text(i, head))
	}
}
