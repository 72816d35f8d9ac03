package contextpilot

import (
	"slices"
	"strings"
	"sync"
)

// handoff keeps plans between a retriever, which plans, and a model, which sends and sees only text.
type handoff struct {
	mu sync.Mutex
	// plans[first:] are held, oldest first, at most maxHeld; those in front are gone, and zero.
	plans   []Plan
	first   int // below maxHeld
	dropped int
}

// Hold keeps a plan until Claim finds its blocks in a prompt. The pilot holds a few hundred plans; older ones go, and so does
// one of the same request, if its ID was not assigned by the pilot. It takes constant time on average.
func (p *Pilot) Hold(plan Plan) {
	p.held.hold(plan, !strings.HasPrefix(plan.RequestID, p.prefix))
}

// hold adds a plan, and drops the oldest if there are too many. What is left moves to the front once in maxHeld drops.
// again says that a plan of the same request may be there, in whose place it comes.
func (h *handoff) hold(plan Plan, again bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if again {
		h.drop(plan.samePrompt)
	}
	h.plans = append(h.plans, plan)
	if len(h.plans)-h.first <= maxHeld {
		return
	}
	h.plans[h.first] = Plan{}
	h.first++
	h.dropped++
	if h.first == maxHeld {
		h.plans = slices.Delete(h.plans, 0, h.first)
		h.first = 0
	}
}

// Claim returns a held plan of the session whose blocks stand in text, all of them and in the plan's order, and
// stops holding it. start and end are where they stand in text, from the first to the last block. Of several such
// plans it is one with most blocks if session is empty, and of these the oldest, as each of them may be on its way to a
// model. A conversation has one turn at a time: there it is the newest, and the older ones are taken back. A model that is
// not told the tenant cannot tell equal names of two tenants' conversations apart: where tenants share a pilot, names must
// differ between them.
func (p *Pilot) Claim(session, text string) (plan Plan, start, end int, ok bool) {
	var found []region
	scanBlocks(text, func(r region) bool {
		found = append(found, r)
		return true
	})
	if len(found) == 0 {
		return Plan{}, 0, 0, false
	}
	plans := p.held.take(session, found)
	if len(plans) == 0 {
		return Plan{}, 0, 0, false
	}
	last := len(plans) - 1
	plan = plans[last]
	for i := range plans[:last] {
		if plan.samePrompt(&plans[i]) {
			continue
		}
		p.Observe(Event{Kind: Gone, Scope: plans[i].Scope, Request: plans[i].RequestID})
	}
	at := standsIn(&plan, found)
	return plan, found[at].start, found[at+len(plan.Items)-1].end, true
}

// take stops holding the plans that Claim is about, oldest first: one without a session, all with one.
func (h *handoff) take(session string, found []region) (plans []Plan) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if session == "" {
		at := h.longest(found)
		if at < 0 {
			return nil
		}
		plans = append(plans, h.plans[at])
		h.drop(plans[0].samePrompt)
		return plans
	}
	h.drop(func(c *Plan) bool {
		taken := c.Session == session && standsIn(c, found) >= 0
		if taken {
			plans = append(plans, *c)
		}
		return taken
	})
	return plans
}

// drop stops holding plans. h.mu is held.
func (h *handoff) drop(which func(*Plan) bool) {
	kept := slices.DeleteFunc(h.plans[h.first:], func(c Plan) bool { return which(&c) })
	h.plans = h.plans[:h.first+len(kept)]
}

// samePrompt reports whether c is a plan of the same request, which may have been planned twice.
func (p *Plan) samePrompt(c *Plan) bool { return c.RequestID == p.RequestID && c.Scope == p.Scope }

// longest returns which of h.plans, of those without a session, has most blocks of those that stand in found, or −1; of
// several it is the oldest. A plan with fewer blocks may be a part of it by chance.
func (h *handoff) longest(found []region) int {
	longest, items := -1, 0
	for i := h.first; i < len(h.plans); i++ {
		c := &h.plans[i]
		if c.Session == "" && len(c.Items) > items && standsIn(c, found) >= 0 {
			longest, items = i, len(c.Items)
		}
	}
	return longest
}

func (h *handoff) dropTenant(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(func(c *Plan) bool { return c.Scope.Tenant == name })
}

// standsIn returns where in found the plan's blocks begin, as one run, or −1.
func standsIn(p *Plan, found []region) int {
	n := len(p.Items)
	for at := 0; n > 0 && at+n <= len(found); at++ {
		same := true
		for i, it := range p.Items {
			if it.Ref != nil || it.Label != found[at+i].label || p.req.Blocks[it.Index].Text != found[at+i].text {
				same = false
				break
			}
		}
		if same {
			return at
		}
	}
	return -1
}

func (h *handoff) stats() (held, dropped int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.plans) - h.first, h.dropped
}
