package contextpilot

import (
	"cmp"
	"slices"
)

// PassedOver takes plans of a conversation out of the index and [Stats] that calls of its model were made without: those that
// Claim was asked about since they were held, and that were planned outside of the conversation, as retrievers' wrappers do. They are
// held on, and one that is claimed later is entered again as it was. Nothing happens without a session: which call was to
// have such a plan is not known.
func (p *Pilot) PassedOver(session string) {
	if session == "" {
		return
	}
	p.held.moving.Lock()
	defer p.held.moving.Unlock()
	p.leave(p.held.leaving(func(c *heldPlan) bool { return c.passed && c.Session == session && c.req.Session == "" }))
}

// leave takes held plans out of the index. p.held.moving is held.
func (p *Pilot) leave(plans []heldPlan) {
	for i := range plans {
		if !p.withdraw(&plans[i].Plan) {
			p.held.stays(&plans[i].Plan)
		}
	}
}

// enterAgain enters a claimed plan that had left the index, as it stands.
func (p *Pilot) enterAgain(plan *Plan) {
	p.held.moving.Lock() // it may be leaving just now
	sc := p.findScope(plan.Scope)
	p.held.moving.Unlock()
	if sc != nil && sc.served(plan.RequestID) {
		return
	}
	req := plan.Request()
	req.Session, req.Fixed, req.Budget, req.Room = "", true, 0, 0
	req.Query = plan.ending(req.Query)
	req.Blocks = make([]Block, len(plan.Items))
	for i, it := range plan.Items {
		req.Blocks[i] = plan.Block(it.Index)
	}
	again := p.Plan(req)
	p.stats.add(&again, -1)
	plan.Prefix = again.Prefix
	p.stats.add(plan, 1)
}

// leaving marks plans as not in the index any more, and returns those that are there.
func (h *handoff) leaving(which func(*heldPlan) bool) (plans []heldPlan) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := h.first; i < len(h.plans); i++ {
		if c := &h.plans[i]; !c.back && which(c) {
			plans = append(plans, *c)
			c.back = true
		}
	}
	return plans
}

// stays says that a plan has not left the index.
func (h *handoff) stays(plan *Plan) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := h.first; i < len(h.plans); i++ {
		if plan.samePrompt(&h.plans[i].Plan) {
			h.plans[i].back = false
		}
	}
}

// ClaimPart is Claim for a call that has some blocks of a held plan by themselves, as each step of a chain that maps over documents
// has one. It returns the plan and which of its Items stand in text, in the order in which they stand there. As one prompt the plan
// is not sent: it leaves the index and [Stats], and what is sent is the caller's to plan. It is held until each of
// its blocks was in a call, or another call has them all after all. Of several plans it is the one with most blocks
// that no call has had yet, then with most blocks; then the oldest if session is empty, else the newest.
func (p *Pilot) ClaimPart(session, text string) (plan Plan, items []int, ok bool) {
	found := p.claims(text)
	if len(found) == 0 {
		return Plan{}, nil, false
	}
	p.held.moving.Lock()
	defer p.held.moving.Unlock()
	c, items := p.held.part(session, found)
	if len(items) == 0 {
		return Plan{}, nil, false
	}
	if !c.back {
		p.leave([]heldPlan{c})
	}
	return c.Plan, items, true
}

// part returns the plan that ClaimPart is about, as it was held, and its items that stand in found.
func (h *handoff) part(session string, found []region) (plan heldPlan, items []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	best, fresh := -1, 0
	for i := h.first; i < len(h.plans); i++ {
		c := &h.plans[i]
		if c.Session != session {
			continue
		}
		here := standing(&c.Plan, found)
		n := c.unsent(here)
		if more := cmp.Or(cmp.Compare(n, fresh), cmp.Compare(len(here), len(items))); more > 0 || more == 0 && len(here) > 0 && session != "" {
			best, fresh, items = i, n, here
		}
	}
	if best < 0 {
		return heldPlan{}, nil
	}
	c := &h.plans[best]
	plan = *c
	sent := make([]bool, len(c.Items))
	copy(sent, c.sent)
	for _, i := range items {
		sent[i] = true
	}
	c.back, c.sent = true, sent
	if !slices.Contains(sent, false) {
		h.drop(func(x *heldPlan) bool { return plan.samePrompt(&x.Plan) })
	}
	return plan, items
}

// unsent returns how many of the items no call has had by themselves.
func (c *heldPlan) unsent(items []int) (n int) {
	for _, i := range items {
		if c.sent == nil || !c.sent[i] {
			n++
		}
	}
	return n
}

// standing returns which items of a plan stand in found, each once.
func standing(p *Plan, found []region) (items []int) {
	for _, r := range found {
		for i, it := range p.Items {
			if it.Ref == nil && it.Label == r.Label && p.req.Blocks[it.Index].Text == r.Text && !slices.Contains(items, i) {
				items = append(items, i)
				break
			}
		}
	}
	return items
}
