package adapter

import (
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// claimed is a held plan and where its blocks stand.
type claimed struct {
	plan contextpilot.Plan
	at   place
	span span
}

// claim looks for the blocks of a held plan in the last user message.
func (m *Turns) claim(t *turn) (claimed, bool) {
	for _, at := range t.texts {
		if plan, start, end, ok := m.pilot.Claim(t.session, at.text); ok {
			return claimed{plan, at, newSpan(at.text, &plan, start, end)}, true
		}
	}
	return claimed{}, false
}

// settle decides what is sent, works it into the messages, and makes the index and the session say the same. The
// retriever planned as if the blocks stood at the beginning of a prompt and belonged to no conversation. That is right
// only without either.
func (m *Turns) settle(t *turn, c *claimed) contextpilot.Plan {
	plan, text := m.replan(t, c)
	if text != c.at.sent { // sent is not the caller's text if the same call was made, and rewritten, before
		t.replace(t.last, c.at.index, text)
		c.at.sent = text
	}
	return plan
}

// replan returns the plan to be sent and the text that holds it.
func (m *Turns) replan(t *turn, c *claimed) (contextpilot.Plan, string) {
	scope := c.plan.Scope
	if m.scope != nil {
		scope = *m.scope
	}
	moved := scope != c.plan.Scope
	shown := t.session != "" && slices.ContainsFunc(t.prior, func(s string) bool { return strings.Contains(s, "<doc ") })
	switch {
	case c.span.known() && (moved || shown):
		plan := m.pilot.Replan(c.plan, m.again(t, c, scope, retrieved(&c.plan)))
		return plan, c.span.rewrite(&plan, m.noHint)
	case moved || t.session != "" || len(t.prior) > 0:
		// The text stays, only its place in the index and the session is put right: the blocks are given in the order
		// in which they stand, so that the policy, asked about the same state, keeps it. Where it does not, because limits take the
		// order for the retriever's or others have been planned since, it is not asked.
		req := m.again(t, c, scope, inPlace(&c.plan))
		placed := m.pilot.Replan(c.plan, req)
		if placed.Reordered() {
			req.Fixed = true
			placed = m.pilot.Replan(placed, req)
		}
		c.plan.Scope, c.plan.Turn = scope, placed.Turn
	}
	return c.plan, c.at.text
}

// again is the claimed request, to be planned for where it really stands, with those of its blocks that the text has.
func (m *Turns) again(t *turn, c *claimed, scope contextpilot.Scope, blocks []contextpilot.Block) contextpilot.Request {
	req := c.plan.Request()
	req.Session, req.Scope, req.Prior, req.Blocks, req.Budget = t.session, scope, t.prior, blocks, 0
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
