package contextpilot

import (
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/internal/prompt/excerpt"
	"github.com/ragpilot/ragpilot/internal/prompt/markup"
)

// Top says how the best block, the one that the retriever ranks first of those that are sent in full, is brought next to the question,
// where many models read best. The order stays as it is if that block, or one with the same score, stands last already, if the request is
// Fixed, after a fault, and with the policy `retrieval`.
type Top uint8

const (
	// TopAuto is the default: TopNear with the policy `best`, else TopAnywhere.
	TopAuto Top = iota
	// TopAnywhere leaves the block where the policy puts it.
	TopAnywhere
	// TopMoves puts the block behind the others.
	TopMoves
	// TopEchoes leaves the block and shows it once more behind the others, see Echo.
	TopEchoes
	// TopNear does what TopMoves or TopEchoes does, or sends retrieval order, whichever is expected to compute the fewest tokens in this
	// request. A block that stands first, as retrieved, stays there.
	TopNear
)

// EchoWhole as Config.EchoTokens echoes whole blocks.
const EchoWhole = -1

// DefaultEchoTokens is the length of an echo in tokens, at most.
const DefaultEchoTokens = 24

// Echo is a block, or a part of it, that is shown once more behind the blocks and references, in front of the order note. It is the one
// exception to the rule that a prompt has each block once.
type Echo struct {
	Index int    // into Request.Blocks, of a block that Items has in full
	Label string // the block's own
	Text  string // word for word in the block's text
	// Tokens is the length of the echo as it is rendered. They are always computed.
	Tokens int
}

// layout is a way to send the blocks of a draft. found are the prompt tokens that it is expected to find in the cache, less those of
// its echo: of two layouts the one with more computes less.
type layout struct {
	order []int
	echo  *Echo
	found int
}

// nearest brings the top block next to the question. resident returns the prompt tokens that an order of the blocks finds in the cache.
func (p *Pilot) nearest(d *draft, resident func(order []int) int) {
	d.plan.Echo = nil
	if !p.strays(d) {
		return
	}
	best := p.bringNear(d, d.place[0], resident)
	if p.cfg.Top == TopNear && len(d.start) == 0 {
		asRetrieved := slices.Concat(d.pinned, d.free, d.last)                     // with limits
		if plain := resident(asRetrieved); plain > d.head && plain >= best.found { // nothing is gained by another order
			best = layout{order: asRetrieved}
		}
	}
	if least := d.plan.Why.Retrieval; p.cfg.Top == TopNear && least > 0 && best.found < d.head+least {
		best.echo = nil // with it the request would compute more than without ragpilot
	}
	d.order = append(d.order[:0], best.order...)
	d.plan.Echo = best.echo
}

// strays reports whether the top block stands where something is to be done about it.
func (p *Pilot) strays(d *draft) bool {
	if p.cfg.Top <= TopAnywhere || d.plan.req.Fixed || len(d.place) == 0 || len(d.order) < 2 {
		return false
	}
	top, first, last := d.place[0], d.order[0], d.order[len(d.order)-1]
	asRetrieved := p.cfg.Top == TopNear && first == top && len(d.start) == 0
	blocks := d.plan.req.Blocks
	asGood := blocks[last].Score == blocks[top].Score && blocks[last].Score != 0 // a retriever ranks those in any order
	return last != top && !asGood && !asRetrieved
}

// bringNear chooses between the ways that the configuration and the limits allow.
func (p *Pilot) bringNear(d *draft, top int, resident func(order []int) int) layout {
	stay := layout{order: d.order, found: resident(d.order)}
	var moved layout
	mayMove := p.cfg.Top != TopEchoes && p.mayMove(d, top)
	if mayMove {
		moved.order = append(slices.DeleteFunc(slices.Clone(d.order), func(i int) bool { return i == top }), top)
		moved.found = resident(moved.order)
		if p.cfg.Top == TopMoves || moved.found >= stay.found {
			return moved
		}
	}
	if d.plan.req.NoEcho || p.cfg.Top == TopMoves { // which may not move it
		return stay
	}
	if stay.echo = p.echo(d, top); stay.echo == nil {
		return stay
	}
	if stay.found -= stay.echo.Tokens; mayMove && moved.found >= stay.found {
		return moved
	}
	return stay
}

// nearestOfAll brings the top block of each draft of a batch next to its question. What an order is expected to find in the cache are the
// blocks that it shares with the drafts that run right before and behind it. moved reports whether an order has changed.
func (p *Pilot) nearestOfAll(drafts []*draft, schedule []int) (moved bool) {
	for at, i := range schedule {
		d := drafts[i]
		was := slices.Clone(d.order)
		p.nearest(d, func(order []int) (tokens int) {
			for _, next := range []int{at - 1, at + 1} {
				if next >= 0 && next < len(schedule) {
					tokens = max(tokens, sharedFront(d, order, drafts[schedule[next]]))
				}
			}
			return d.head + tokens
		})
		moved = moved || !slices.Equal(was, d.order)
	}
	return moved
}

// nearestAlone brings the top block of a draft that continues a conversation next to its question: no order of it finds anything.
func (p *Pilot) nearestAlone(d *draft) {
	if d.plan.Fault == nil {
		d.plan.Fault = p.guard(stageReorder, func() error { p.nearest(d, func([]int) int { return 0 }); return nil })
	}
}

// sharedFront returns the tokens of the blocks with which both orders begin.
func sharedFront(d *draft, order []int, other *draft) (tokens int) {
	for n, i := range order {
		if n == len(other.order) || d.ids[i].key != other.ids[other.order[n]].key {
			break
		}
		tokens += int(d.tokens[i])
	}
	return tokens
}

// mayMove reports whether the limits let the block stand last.
func (p *Pilot) mayMove(d *draft, top int) bool {
	l := &p.cfg.Limits
	return l.Group == nil && (l.MaxDisplacement == 0 || len(d.order)-1 <= l.MaxDisplacement) && slices.Contains(d.free, top)
}

// echo returns what to show of a block once more; nil if it does not fit.
func (p *Pilot) echo(d *draft, block int) *Echo {
	req := &d.plan.req
	text := req.Blocks[block].Text
	if text == "" && req.EchoText != nil {
		text = req.EchoText(block)
	} else if limit := p.cfg.EchoTokens; limit > 0 && int(d.tokens[block]) > limit {
		// The tokenizer may ask an engine, and the scope is locked: it counts what an estimate has chosen.
		text = excerpt.Of(text, req.Query, limit, Estimate{}.Count)
		text = excerpt.Cut(text, limit, p.cfg.Tokenizer.Count)
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	e := &Echo{Index: block, Label: d.ids[block].label, Text: text}
	e.Tokens = p.cfg.Tokenizer.Count(renderEcho(d.plan.forms, e))
	if !d.fitsEcho(e) {
		return nil
	}
	return e
}

// fitsEcho reports whether the request's limits leave room for an echo.
func (d *draft) fitsEcho(e *Echo) bool {
	req := &d.plan.req
	if req.Room != 0 && e.Tokens > d.room {
		return false
	}
	if req.Budget <= 0 {
		return true
	}
	left := req.Budget - e.Tokens
	for _, i := range d.place {
		left -= int(d.tokens[i])
	}
	return left >= 0
}

func renderEcho(forms noteForms, e *Echo) string {
	return markup.RenderEcho(e.Label, e.Text, forms.in(e.Text))
}
