package contextpilot_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/prompt/markup"
)

// checker holds what must agree between all plans that it sees: a block's label and its rendered bytes.
type checker struct {
	dedup   contextpilot.Dedup
	block   int // Config.BlockSize
	labels  map[contextpilot.Block]string
	bytes   map[contextpilot.Block]string
	ownerOf map[string]string // label → ID, for labels that are not made from texts
}

func newChecker(cfg contextpilot.Config) *checker {
	return &checker{
		dedup: cfg.Dedup, block: max(cfg.BlockSize, 1), labels: map[contextpilot.Block]string{},
		bytes: map[contextpilot.Block]string{}, ownerOf: map[string]string{},
	}
}

func identity(b contextpilot.Block) contextpilot.Block {
	return contextpilot.Block{ID: b.ID, Text: b.Text}
}

// check returns what is wrong with the plan of a request.
func (c *checker) check(req contextpilot.Request, p contextpilot.Plan) error {
	return errors.Join(c.partition(req, p), c.rendering(req, p), c.references(req, p), c.citations(p), c.numbers(p), c.echo(req, p))
}

// echo: at most one block is shown once more, of those that are sent in full, word for word, next to the question.
func (c *checker) echo(req contextpilot.Request, p contextpilot.Plan) error {
	text := p.RenderEcho()
	if !strings.HasPrefix(p.Prompt("?"), p.Context()+text) {
		return fmt.Errorf("prompt %q does not have the echo %q behind the blocks", p.Prompt("?"), text)
	}
	if p.Echo == nil {
		return nil
	}
	e := *p.Echo
	at := slices.IndexFunc(p.Items, func(it contextpilot.Item) bool { return it.Index == e.Index && it.Ref == nil })
	switch {
	case at < 0 || p.Items[at].Label != e.Label:
		return fmt.Errorf("echo of %d %q, which is not sent in full under that label: %+v", e.Index, e.Label, p.Items)
	case !strings.Contains(req.Blocks[e.Index].Text, e.Text):
		return fmt.Errorf("echo %q does not stand in %q", e.Text, req.Blocks[e.Index].Text)
	case p.Fault != nil || req.Fixed || req.NoEcho:
		return fmt.Errorf("an echo after a fault, of a fixed order or where none can be shown: %+v", e)
	}
	found := slices.Collect(markup.All(text))
	if len(found) != 1 || !found[0].Echo || found[0].Label != e.Label || found[0].Text != e.Text || found[0].End != len(text)-1 {
		return fmt.Errorf("echo %+v is rendered as %q and read as %+v", e, text, found)
	}
	return nil
}

// partition: every retrieved block stands in Items or in LeftOut, once.
func (c *checker) partition(req contextpilot.Request, p contextpilot.Plan) error {
	seen := make([]int, len(req.Blocks))
	for i, it := range p.Items {
		seen[it.Index]++
		if it.Ref == nil && i > 0 && p.Items[i-1].Ref != nil {
			return fmt.Errorf("item %d is a block behind references", i)
		}
	}
	for _, l := range p.LeftOut {
		seen[l.Index]++
		switch a, b := req.Blocks[l.Index], req.Blocks[l.Same]; {
		case l.Reason == contextpilot.OverBudget && req.Budget > 0:
		case l.Reason != contextpilot.Duplicate:
			return fmt.Errorf("block %d is left out for %v", l.Index, l.Reason)
		case a.Text != b.Text || l.Index <= l.Same:
			return fmt.Errorf("%q %q is left out as the same as %q %q", a.ID, a.Text, b.ID, b.Text)
		case a.ID != b.ID && c.dedup != contextpilot.DedupContent && (a.ID != "" && b.ID != ""):
			return fmt.Errorf("%q is left out as the same as %q", a.ID, b.ID)
		}
	}
	for i, n := range seen {
		if n != 1 {
			return fmt.Errorf("block %d is in the plan %d times: %+v", i, n, p)
		}
	}
	if p.Len() != len(req.Blocks) {
		return fmt.Errorf("%d of %d blocks", p.Len(), len(req.Blocks))
	}
	return nil
}

// rendering: a strict reader finds the blocks of the plan in its context, and the location notes behind them.
func (c *checker) rendering(req contextpilot.Request, p contextpilot.Plan) error {
	var want []shownBlock
	var notes []string
	for i, it := range p.Items {
		b := identity(req.Blocks[it.Index])
		if was, ok := c.labels[b]; ok && was != it.Label {
			return fmt.Errorf("label %q, was %q", it.Label, was)
		}
		c.labels[b] = it.Label
		if b.ID != "" {
			if was, ok := c.ownerOf[it.Label]; ok && was != b.ID {
				return fmt.Errorf("label %q of %q is also that of %q", it.Label, b.ID, was)
			}
			c.ownerOf[it.Label] = b.ID
		}
		if it.Ref != nil {
			if it.Ref.Note != "" {
				notes = append(notes, it.Ref.Note)
			}
			continue
		}
		want = append(want, shownBlock{it.Label, b.Text})
		text := p.RenderItem(i)
		if was, ok := c.bytes[b]; ok && was != text {
			return fmt.Errorf("rendered as %q, was %q", text, was)
		}
		c.bytes[b] = text
	}
	got, lines, err := readStrict(p.Context())
	if err != nil {
		return fmt.Errorf("%w in %q", err, p.Context())
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("context shows %q, plan has %q", got, want)
	}
	if !slices.Equal(lines, notes) {
		return fmt.Errorf("context has lines %q, plan has location notes %q", lines, notes)
	}
	return nil
}

// references: what a reference points to stands in the messages, under a label that means nothing else.
func (c *checker) references(req contextpilot.Request, p contextpilot.Plan) error {
	var shown []shownBlock
	for _, t := range req.Prior {
		shown = append(shown, readMessage(t)...)
	}
	for _, it := range p.Items {
		if it.Ref == nil {
			continue
		}
		b := req.Blocks[it.Index]
		switch {
		case req.Behind == (contextpilot.Position{}) || len(req.Prior) == 0 || c.dedup == contextpilot.DedupOff:
			return fmt.Errorf("a reference without a history: %+v", *it.Ref)
		case !slices.Contains(shown, shownBlock{it.Ref.Label, b.Text}):
			return fmt.Errorf("reference to %q, which the messages do not show with %q: %q", it.Ref.Label, b.Text, shown)
		case c.dedup == contextpilot.DedupID && it.Ref.Label != it.Label:
			return fmt.Errorf("reference from %q to %q", it.Label, it.Ref.Label)
		case it.Ref.Turn < 1 || it.Ref.Turn > req.Behind.Turn() || it.Ref.Turn >= p.Turn:
			return fmt.Errorf("reference of turn %d to turn %d (%s)", p.Turn, it.Ref.Turn, it.Ref.RequestID)
		}
		for _, s := range shown {
			if s.Label == it.Ref.Label && s.Text != b.Text {
				return fmt.Errorf("reference to %q, which the messages show as %q and %q", s.Label, b.Text, s.Text)
			}
		}
		for _, other := range p.Items {
			if other.Ref == nil && other.Label == it.Ref.Label && req.Blocks[other.Index].Text != b.Text {
				return fmt.Errorf("reference to %q beside a block of that label with another text", other.Label)
			}
		}
	}
	return nil
}

// citations: a label leads back to its block, unless the request itself has two texts under one ID.
func (c *checker) citations(p contextpilot.Plan) error {
	for _, it := range p.Items {
		labels := []string{it.Label}
		if it.Ref != nil {
			labels = append(labels, it.Ref.Label)
		}
		for _, l := range labels {
			got, ok := p.Cite(l)
			if !ok {
				return fmt.Errorf("label %q leads nowhere", l)
			}
			if a, b := p.Block(got.Index), p.Block(it.Index); got.Index != it.Index && (a.ID != b.ID || a.Text == b.Text) {
				return fmt.Errorf("label %q leads to block %d, want %d", l, got.Index, it.Index)
			}
		}
	}
	if c, ok := p.Cite("no such label"); ok {
		return fmt.Errorf("found %+v", c)
	}
	return nil
}

func (c *checker) numbers(p contextpilot.Plan) error {
	full := 0
	for _, it := range p.Items {
		if it.Ref == nil {
			full++
		}
	}
	if x := p.Prefix; x.Blocks < 0 || x.Blocks > full || x.Tokens < 0 || x.Tokens%c.block != 0 {
		return fmt.Errorf("%d blocks: expected prefix %+v", full, x)
	}
	if p.Fault != nil || p.RequestID == "" || p.Turn < 1 {
		return fmt.Errorf("request %q, turn %d, fault: %w", p.RequestID, p.Turn, p.Fault)
	}
	return nil
}
