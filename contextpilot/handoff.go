package contextpilot

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ragpilot/ragpilot/internal/markup"
)

// handoff keeps plans between a retriever, which plans, and a model, which sends and sees only text.
type handoff struct {
	claims atomic.Bool // models claim: what is not claimed was not sent
	moving sync.Mutex  // held while plans that stay held leave the index; taken before mu, and before a session's and a scope's

	mu sync.Mutex
	// plans[first:] are held, oldest first, at most maxHeld; those in front are gone, and zero.
	plans   []heldPlan
	first   int // below maxHeld
	dropped int
}

// heldPlan is a plan that waits for its prompt.
type heldPlan struct {
	Plan
	since  time.Time
	passed bool   // its conversation has called the model since, and did not claim it
	back   bool   // it has left the index and is not counted, see handoff.moving
	sent   []bool // which of the items calls had without the others; nil: none
}

// Hold keeps a plan until Claim finds its blocks in a prompt. The pilot holds a few hundred plans; older ones go, and so does
// one of the same request, if its ID was not assigned by the pilot, as soon as that is planned
// again. It takes constant time on average, and looks at all that are held for a plan of a conversation.
//
// A pilot without a model that claims counts every plan as sent. With one, see [Pilot.ExpectClaims], a plan that is not
// claimed was not sent: it leaves the index and [Stats] again if its conversation calls the model without it and then
// holds another plan, after ten minutes, or when it goes to make room; with [Pilot.PassedOver] at once.
func (p *Pilot) Hold(plan Plan) {
	p.unclaimed(p.held.hold(plan, p.cfg.Now(), !strings.HasPrefix(plan.RequestID, p.prefix)))
}

// ExpectClaims says that plans which are held are claimed before they are sent, as the wrappers of models do. The first
// Claim says so, too. It holds for all plans of the pilot: do not hold one that is sent without Claim.
func (p *Pilot) ExpectClaims() { p.held.claims.Store(true) }

// Replan plans a request in place of a plan that was claimed, or not held, and not sent: the old one leaves the index, its
// conversation and [Stats], so that what is sent is counted once. The request has the old plan's ID; its scope may be another.
func (p *Pilot) Replan(old Plan, req Request) Plan {
	p.withdraw(&old)
	req.ID = old.RequestID
	return p.Plan(req)
}

// unclaimed takes back plans that no model has claimed.
func (p *Pilot) unclaimed(plans []heldPlan) {
	for i := range plans {
		c := &plans[i]
		if c.sent == nil && (c.back || p.withdraw(&c.Plan)) {
			p.stats.unclaimed.Add(1)
		}
	}
}

// withdraw takes a plan that was not sent out of the index, its conversation and the counters. One that was served stays.
func (p *Pilot) withdraw(plan *Plan) bool {
	sc := p.findScope(plan.Scope)
	if sc != nil && sc.served(plan.RequestID) {
		return false
	}
	p.stats.add(plan, -1)
	if sc != nil {
		p.gone(sc, plan.RequestID)
	}
	return true
}

// superseded stops holding plans of a request that is planned again in their place: what becomes of them must not take the new one
// back. If models claim they were not sent, and are counted no more.
func (p *Pilot) superseded(sc *scope, req *Request) {
	if strings.HasPrefix(req.ID, p.prefix) { // claimed, or never held
		return
	}
	unsent := p.held.release(&Plan{RequestID: req.ID, Scope: req.Scope})
	if !p.held.claims.Load() || sc.served(req.ID) {
		return
	}
	for i := range unsent {
		if !unsent[i].back {
			p.stats.add(&unsent[i].Plan, -1)
		}
	}
}

// release stops holding the plans of a request, and returns them.
func (h *handoff) release(of *Plan) []heldPlan {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.drop(func(c *heldPlan) bool { return of.samePrompt(&c.Plan) })
}

// hold adds a plan, and drops the oldest if there are too many. What is left moves to the front once in maxHeld drops.
// again says that a plan of the same request may be there, in whose place it comes. It returns the plans that were not
// sent: none if no model claims.
func (h *handoff) hold(plan Plan, now time.Time, again bool) (unsent []heldPlan) {
	claims := h.claims.Load()
	h.mu.Lock()
	defer h.mu.Unlock()
	if again {
		h.drop(func(c *heldPlan) bool { return plan.samePrompt(&c.Plan) })
	}
	if claims && plan.Session != "" {
		unsent = h.drop(func(c *heldPlan) bool {
			return c.passed && c.Session == plan.Session && c.Scope.Tenant == plan.Scope.Tenant
		})
		h.dropped += len(unsent)
	}
	h.plans = append(h.plans, heldPlan{Plan: plan, since: now})
	if len(h.plans)-h.first <= maxHeld {
		return unsent
	}
	if claims {
		unsent = append(unsent, h.plans[h.first])
	}
	h.dropFirst()
	return unsent
}

// dropFirst stops holding the oldest plan. h.mu is held.
func (h *handoff) dropFirst() {
	h.plans[h.first] = heldPlan{}
	h.first++
	h.dropped++
	if h.first == maxHeld {
		h.plans = slices.Delete(h.plans, 0, h.first)
		h.first = 0
	}
}

// expire stops holding the plans that have waited for too long, and returns them, if models claim. It costs little if there
// are none.
func (h *handoff) expire(now time.Time) (unsent []heldPlan) {
	if !h.claims.Load() {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.first < len(h.plans) && now.Sub(h.plans[h.first].since) >= heldFor {
		unsent = append(unsent, h.plans[h.first])
		h.dropFirst()
	}
	return unsent
}

// Claim returns a held plan of the session whose blocks stand in text, all of them and in the plan's order, and
// stops holding it. start and end are where they stand in text, from the first to the last block. Of several such
// plans it is one with most blocks if session is empty, and of these the oldest, as each of them may be on its way to a
// model. A conversation has one turn at a time: there it is the newest, and the older ones are taken back. A model that is
// not told the tenant cannot tell equal names of two tenants' conversations apart: where tenants share a pilot, names must
// differ between them. A plan that had left the index, see [Pilot.PassedOver] and [Pilot.ClaimPart], is entered again as it was.
func (p *Pilot) Claim(session, text string) (plan Plan, start, end int, ok bool) {
	found := p.claims(text)
	plans := p.held.take(session, found)
	if len(plans) == 0 {
		return Plan{}, 0, 0, false
	}
	last := len(plans) - 1
	plan = plans[last].Plan
	if plans[last].back {
		p.enterAgain(&plan)
	}
	p.unclaimed(slices.DeleteFunc(plans[:last], func(c heldPlan) bool { return plan.samePrompt(&c.Plan) }))
	at := standsIn(&plan, found)
	return plan, found[at].Start, found[at+len(plan.Items)-1].End, true
}

// claims is what every claim begins with. It returns the blocks of a text.
func (p *Pilot) claims(text string) []region {
	p.ExpectClaims()
	p.unclaimed(p.held.expire(p.cfg.Now()))
	return slices.Collect(markup.Regions(text))
}

// take stops holding the plans that Claim is about, oldest first: one without a session, all with one. Those of the session
// that it does not take have been passed over.
func (h *handoff) take(session string, found []region) (plans []heldPlan) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if session == "" {
		at := h.longest(found)
		if at < 0 {
			return nil
		}
		claimed := h.plans[at]
		h.drop(func(c *heldPlan) bool { return claimed.samePrompt(&c.Plan) })
		return []heldPlan{claimed}
	}
	return h.drop(func(c *heldPlan) bool {
		if c.Session != session {
			return false
		}
		c.passed = true
		return standsIn(&c.Plan, found) >= 0
	})
}

// drop stops holding plans and returns them, oldest first. h.mu is held.
func (h *handoff) drop(which func(*heldPlan) bool) (dropped []heldPlan) {
	kept := h.plans[:h.first]
	for i := h.first; i < len(h.plans); i++ {
		switch {
		case which(&h.plans[i]):
			dropped = append(dropped, h.plans[i])
		case len(dropped) > 0:
			kept = append(kept, h.plans[i])
		default:
			kept = h.plans[:i+1] // it stays where it is
		}
	}
	clear(h.plans[len(kept):])
	h.plans = kept
	return dropped
}

// samePrompt reports whether c is a plan of the same request, which may have been planned twice.
func (p *Plan) samePrompt(c *Plan) bool { return c.RequestID == p.RequestID && c.Scope == p.Scope }

// longest returns which of h.plans, of those without a session, has most blocks of those that stand in found, or −1; of
// several it is the oldest. A plan with fewer blocks may be a part of it by chance.
func (h *handoff) longest(found []region) int {
	longest, items := -1, 0
	for i := h.first; i < len(h.plans); i++ {
		c := &h.plans[i]
		if c.Session == "" && len(c.Items) > items && standsIn(&c.Plan, found) >= 0 {
			longest, items = i, len(c.Items)
		}
	}
	return longest
}

func (h *handoff) dropTenant(name string) []heldPlan {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.drop(func(c *heldPlan) bool { return c.Scope.Tenant == name })
}

// standsIn returns where in found the plan's blocks begin, as one run, or −1.
func standsIn(p *Plan, found []region) int {
	n := len(p.Items)
	for at := 0; n > 0 && at+n <= len(found); at++ {
		same := true
		for i, it := range p.Items {
			if it.Ref != nil || it.Label != found[at+i].Label || p.req.Blocks[it.Index].Text != found[at+i].Text {
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
