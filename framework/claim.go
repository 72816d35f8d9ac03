package framework

import (
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/prompt/markup"
)

// claimed is a held plan and where its blocks stand.
type claimed struct {
	plan  contextpilot.Plan
	at    place
	span  span
	prior []string // texts in front of the blocks; none: they stand at the front of the prompt
	// behind is the position behind the last planned turn of these.
	behind contextpilot.Position
}

// claim looks for the blocks of a held plan in the last user message.
func (m *Calls) claim(t *transcript) (claimed, bool) {
	for i, at := range t.texts {
		plan, start, end, ok := m.offers.claim(m.tenant(), t.session, at.text)
		if !ok {
			continue
		}
		c := claimed{plan, at, newSpan(at.text, &plan, start, end), t.prior, contextpilot.Position{}}
		if front, n := m.sent.beginning(&at, start); n > 0 { // a text that has grown
			if c.behind = front.end; c.behind == (contextpilot.Position{}) { // it was not answered yet
				c.behind = m.pilot.Restore(m.behind(t), front.of(at.text[:n]))
			}
			c.span.before = front.of(at.text[:n]) + at.text[n:start]
			c.prior = append(slices.Clip(t.prior), c.span.before)
		} else {
			c.behind = m.behind(t)
			c.prior = append(slices.Clip(c.prior), t.shownBeside(i, c.span.before)...)
		}
		return c, true
	}
	return claimed{}, false
}

// shownBeside returns what shows blocks in front of a plan in its own message, behind others. Nothing refers to these, but a label that
// they give to another text names two.
func (t *transcript) shownBeside(text int, before string) (out []string) {
	if len(t.prior) == 0 {
		return nil
	}
	for i := range t.texts[:text] {
		if s := t.texts[i].sent; markup.In(s) {
			out = append(out, s)
		}
	}
	if markup.In(before) {
		out = append(out, before)
	}
	return out
}

// part looks for some of a held plan's blocks in the last user message, and plans what is sent as it stands: outside of
// the conversation, of which a step of a chain is no turn.
func (m *Calls) part(t *transcript) (plan, of contextpilot.Plan, ok bool) {
	var texts []string
	for i := range t.texts {
		if !t.more || !t.texts[i].known { // in an agent's next step the blocks are those of a plan before
			texts = append(texts, t.texts[i].text)
		}
	}
	of, items, ok := m.offers.part(m.tenant(), t.session, strings.Join(texts, "\n"))
	if !ok {
		return plan, of, false
	}
	req := of.Request()
	req.ID, req.Session, req.Scope, req.Prior = "", "", m.scopeOf(&of), t.prior
	req.Fixed, req.Budget, req.Room = true, 0, 0
	req.Blocks = make([]contextpilot.Block, len(items))
	for i, item := range items {
		req.Blocks[i] = of.Block(of.Items[item].Index)
	}
	plan = m.pilot.Plan(req)
	plan.Session = t.session
	return plan, of, true
}

// settle decides what is sent, works it into the messages, and makes the index say the same. The retriever planned as if the
// blocks stood at the beginning of a prompt.
func (m *Calls) settle(t *transcript, c *claimed) contextpilot.Plan {
	plan, text := m.replan(t, c)
	if text != c.at.sent { // sent is not the caller's text if the same call was made, and rewritten, before
		t.replace(t.last, c.at.index, text)
		c.at.sent = text
	}
	c.at.reusable, c.at.behind = c.span.hint == hintNone, len(c.span.after)
	if !c.at.known { // a call that fails may be made again, and another one may not wait for its end
		m.sent.remember(&c.at, contextpilot.Position{}, 0)
	}
	return plan
}

// replan returns the plan to be sent and the text that holds it. Where the blocks stand at the front of the prompt the plan is what is
// sent, with its hint. Behind other texts no order gains anything: they stand as they were retrieved.
func (m *Calls) replan(t *transcript, c *claimed) (contextpilot.Plan, string) {
	scope := m.scopeOf(&c.plan)
	moved, behind := scope != c.plan.Scope, len(c.prior) > 0
	noHint := m.noHint || moved || behind
	switch {
	case c.span.known() && (moved || behind):
		req := m.again(t, c, scope, retrieved(&c.plan))
		req.Fixed = behind
		if c.again(t) {
			req.Blocks, req.Fixed = asSent(&c.plan, req.Blocks, c.at.sent), true
		}
		plan := m.instead(&c.plan, req)
		return plan, m.asBefore(t, c, &plan, c.span.rewrite(&plan, m.noHint))
	case moved || behind:
		// The text stays, only its place in the index is put right: the blocks are given in the order
		// in which they stand, so that the policy, asked about the same state, keeps it. Where it does not, because limits take the
		// order for the retriever's or others have been planned since, it is not asked.
		req := m.again(t, c, scope, inPlace(&c.plan))
		req.Query = c.span.says(noHint) + req.Query
		req.NoEcho = true // the text has what it has
		placed := m.instead(&c.plan, req)
		if placed.Reordered() {
			req.Fixed = true
			placed = m.instead(&placed, req)
		}
		if slices.ContainsFunc(placed.Items, func(it contextpilot.Item) bool { return it.Ref != nil }) { // they stand there in full
			req.Behind = contextpilot.Position{}
			for _, text := range c.prior {
				req.Behind = m.pilot.Behind(req.Behind, nil, text)
			}
			placed = m.instead(&placed, req)
		}
		c.plan.Scope, c.plan.Turn, c.plan.End = scope, placed.Turn, placed.End
	}
	c.plan.Session = t.session
	return c.plan, m.asBefore(t, c, &c.plan, c.span.hinted(noHint))
}

// again reports whether the text was sent before and has been answered: an agent goes on, whose tool may have found the same blocks.
func (c *claimed) again(t *transcript) bool { return c.at.known && t.more }

// asBefore keeps an agent's question as its first step sent it. It returns the text of that step if only the echo and the order hint
// differ, and gives the plan these; else it returns text.
func (m *Calls) asBefore(t *transcript, c *claimed, plan *contextpilot.Plan, text string) string {
	if !c.again(t) || text == c.at.sent || c.span.hint != hintNone {
		return text
	}
	front, _ := strings.CutSuffix(text, c.span.after)
	if plan.Hint != "" {
		front = strings.TrimSuffix(front, "\n"+plan.Hint)
	}
	if echo := echoOf(plan); echo != "" {
		front = strings.TrimSuffix(front, "\n"+echo)
	}
	rest, ok := strings.CutPrefix(c.at.sent, front)
	if !ok {
		return text
	}
	hint, ok := strings.CutSuffix(rest, c.span.after)
	if !ok {
		return text
	}
	echo, hint := m.cutEcho(plan, hint)
	if hint != "" && (hint[0] != '\n' || strings.Contains(hint[1:], "\n")) {
		return text
	}
	plan.Hint, plan.Echo = strings.TrimPrefix(hint, "\n"), echo
	return c.at.sent
}

// cutEcho takes an echo of one of the plan's blocks from the beginning of what stands behind the blocks.
func (m *Calls) cutEcho(plan *contextpilot.Plan, text string) (echo *contextpilot.Echo, rest string) {
	for r := range markup.All(text) {
		if r.Start != 1 || !r.Echo {
			break
		}
		it, ok := plan.Cite(r.Label)
		if !ok || !strings.Contains(plan.Block(it.Index).Text, r.Text) {
			break
		}
		tokens := m.pilot.Tokenizer().Count(text[r.Start:r.End] + "\n")
		return &contextpilot.Echo{Index: it.Index, Label: r.Label, Text: r.Text, Tokens: tokens}, text[r.End:]
	}
	return nil, text
}

// instead plans a request in place of a plan that was not sent, so that what is sent is counted once. It has the old plan's ID.
func (m *Calls) instead(old *contextpilot.Plan, req contextpilot.Request) contextpilot.Plan {
	m.pilot.TakeBack(old)
	req.ID = old.RequestID
	return m.pilot.Plan(req)
}

// scopeOf returns the cache that a plan's prompt goes to.
func (m *Calls) scopeOf(plan *contextpilot.Plan) contextpilot.Scope {
	if m.scope != nil {
		return *m.scope
	}
	return plan.Scope
}

// tenant returns whose calls all are, or "".
func (m *Calls) tenant() string {
	if m.scope == nil {
		return ""
	}
	return m.scope.Tenant
}

// again is the claimed request, to be planned for where it really stands, with those of its blocks that the text has.
func (m *Calls) again(t *transcript, c *claimed, scope contextpilot.Scope, blocks []contextpilot.Block) contextpilot.Request {
	req := c.plan.Request()
	req.Session, req.Scope, req.Prior, req.Behind, req.Blocks, req.Budget = t.session, scope, c.prior, c.behind, blocks, 0
	return req
}

// retrieved returns the plan's blocks in the retriever's order, without those that did not fit.
func retrieved(plan *contextpilot.Plan) []contextpilot.Block {
	blocks := make([]contextpilot.Block, 0, plan.Len())
	for i := range plan.Len() {
		over := slices.ContainsFunc(plan.LeftOut, func(l contextpilot.LeftOut) bool {
			return l.Index == i && l.Reason != contextpilot.Duplicate
		})
		if !over {
			blocks = append(blocks, plan.Block(i))
		}
	}
	return blocks
}

// inPlace returns the blocks that the plan sends, in the order in which it sends them.
func inPlace(plan *contextpilot.Plan) []contextpilot.Block {
	blocks := make([]contextpilot.Block, len(plan.Items))
	for i, it := range plan.Items {
		blocks[i] = plan.Block(it.Index)
	}
	return blocks
}

// asSent returns the plan's blocks in the order in which a text has them, those that it does not have behind the others.
func asSent(plan *contextpilot.Plan, blocks []contextpilot.Block, text string) []contextpilot.Block {
	items := standing(plan, slices.Collect(markup.Regions(text)))
	out := make([]contextpilot.Block, 0, len(blocks))
	for _, i := range items {
		out = append(out, plan.Block(plan.Items[i].Index))
	}
	for _, b := range blocks {
		if !slices.ContainsFunc(out, func(x contextpilot.Block) bool { return x.ID == b.ID && x.Text == b.Text }) {
			out = append(out, b)
		}
	}
	return out
}
