package contextpilot

import (
	"fmt"
	"slices"
	"strings"
)

// Plan is the layout of one request. It is always usable: after a fault it is retrieval order and Fault says
// why. Every block of the request is in Items or in LeftOut, exactly once. A Plan is a value of its own; it
// shares nothing with the Pilot but the texts of the blocks.
type Plan struct {
	// RequestID goes to the engine with the prompt; events name it.
	RequestID string
	Session   string
	Scope     Scope
	// Turn is the number of this request in its conversation, from 1: one more than that of Request.Behind.
	Turn int
	// End is where the next turn of the conversation goes on, once this one is answered.
	End Position
	// Policy is the name of the policy that chose the order.
	Policy string
	// Items are the blocks in prompt order: those sent in full, then references.
	Items []Item
	// LeftOut names the blocks that are not in the prompt, and why.
	LeftOut []LeftOut
	// Echo is what is shown once more, behind Items and in front of Hint; nil if nothing is. See [Top].
	Echo *Echo
	// Hint is the order note, one line; empty if there is none.
	Hint string
	// Prefix is what the engine is expected to hold already.
	Prefix Prefix
	// Why says how the order came about.
	Why Why
	// Fault is set if a stage failed; it wraps ErrFault. It is for logs and counters: the plan is usable, every block
	// is in it in full and in retrieval order, repeats and what exceeds Request.Budget included; only Request.Room holds.
	Fault error

	req           Request // without Prior and Behind
	afterQuestion bool
	forms         noteForms
	anywhere      int // tokens of Prefix that are of blocks behind the resident ones
}

// Item is one block in its place.
type Item struct {
	Index int    // into Request.Blocks; the retriever's rank is Index + 1
	Label string // the name under which the model sees the block
	Ref   *Ref   // nil: sent in full
}

// Ref points to where a block was shown before, in the messages that are being sent.
type Ref struct {
	Label     string // the name it was shown under; not the block's own if the same text came under another ID
	Turn      int    // of the conversation, in which it was shown
	RequestID string // of that turn
	Note      string // the line that stands in the block's place; empty with Notes.NoLocation
}

// LeftOut is a retrieved block that is not in the prompt.
type LeftOut struct {
	Index  int
	Reason Reason
	// Same is the index of the block that this one repeats, for Duplicate.
	Same int
}

// Reason says why a block was left out.
type Reason uint8

const (
	// Duplicate: the request lists the same block twice.
	Duplicate Reason = iota + 1
	// OverBudget: it did not fit Request.Budget.
	OverBudget
	// OverWindow: it did not fit Request.Room.
	OverWindow
)

// String returns the reason in words.
func (r Reason) String() string {
	names := [...]string{"duplicate", "over budget", "over window"}
	if i := int(r) - 1; i >= 0 && i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}

// Prefix is what a prompt is expected to find in the engine's cache.
type Prefix struct {
	Blocks int // leading blocks of this turn that are resident
	// Tokens are resident prompt tokens, history included, in whole engine blocks; with Config.Recompute also what need not be
	// computed of the blocks behind them.
	Tokens int
}

// RenderItem returns item i as it stands in the prompt, with its line feed: the block in full, or the location
// note in place of it. The bytes of a block depend on the block alone.
func (p *Plan) RenderItem(i int) string {
	it := p.Items[i]
	if it.Ref == nil {
		return renderBlock(p.forms, it.Label, p.req.Blocks[it.Index].Text)
	}
	if it.Ref.Note == "" {
		return ""
	}
	return it.Ref.Note + "\n"
}

// RenderFull returns item i with its text, also where the plan only refers to an earlier message: under the label that
// the reference names, so that it can take the place of the block it refers to when that one leaves the
// conversation, and later references lead to it.
func (p *Plan) RenderFull(i int) string {
	it := p.Items[i]
	if it.Ref == nil {
		return p.RenderItem(i)
	}
	return renderBlock(p.forms, it.Ref.Label, p.req.Blocks[it.Index].Text)
}

// RenderEcho returns the echo as it stands in the prompt, behind all items, with its line feed; "" if there is none.
func (p *Plan) RenderEcho() string {
	if p.Echo == nil {
		return ""
	}
	return renderEcho(p.forms, p.Echo)
}

// Context returns all items, rendered in prompt order.
func (p *Plan) Context() string {
	var b strings.Builder
	for i := range p.Items {
		b.WriteString(p.RenderItem(i))
	}
	return b.String()
}

// Spans returns where each block that is sent in full begins and ends, in bytes of Context, and of Prompt, in their order.
func (p *Plan) Spans() [][2]int {
	var spans [][2]int
	at := 0
	for i, it := range p.Items {
		end := at + len(p.RenderItem(i))
		if it.Ref == nil && end > at {
			spans = append(spans, [2]int{at, end})
		}
		at = end
	}
	return spans
}

// Prompt returns the whole turn: the context, then the order note and the question in the configured order.
func (p *Plan) Prompt(question string) string {
	return p.Context() + p.ending(question)
}

// ending is the question with what stands between it and the items.
func (p *Plan) ending(question string) string {
	echo := p.RenderEcho()
	switch {
	case p.Hint == "":
		return echo + question
	case p.afterQuestion:
		return echo + question + "\n" + p.Hint
	}
	return echo + p.Hint + "\n" + question
}

// closing returns what stands behind the blocks: references, echo, order note and question, in the order of the prompt.
func (p *Plan) closing() string {
	var b strings.Builder
	for i, it := range p.Items {
		if it.Ref != nil {
			b.WriteString(p.RenderItem(i))
		}
	}
	b.WriteString(p.ending(p.req.Query))
	return b.String()
}

// Cite returns the item behind a label: the block's own, or, for a reference, the one it was shown under. [Plan.Block] has
// its text. If one request has two texts under one ID, they share a label, and it is the first in prompt order.
func (p *Plan) Cite(label string) (Item, bool) {
	for _, it := range p.Items {
		if it.Label == label || it.Ref != nil && it.Ref.Label == label {
			return it, true
		}
	}
	return Item{}, false
}

// Request returns the request that was planned, with its assigned ID and without Prior and Behind: what is needed to plan it
// again for another place.
func (p *Plan) Request() Request {
	req := p.req
	req.Blocks = slices.Clone(req.Blocks)
	return req
}

// Block returns Request.Blocks[i].
func (p *Plan) Block(i int) Block { return p.req.Blocks[i] }

// Len returns the number of blocks that were retrieved.
func (p *Plan) Len() int { return len(p.req.Blocks) }

// Reordered reports whether the blocks sent in full are in another order than retrieved.
func (p *Plan) Reordered() bool {
	last := -1
	for _, it := range p.Items {
		if it.Ref != nil {
			continue
		}
		if it.Index < last {
			return true
		}
		last = it.Index
	}
	return false
}
