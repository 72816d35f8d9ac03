package contextpilot

import (
	"slices"
	"sync"
)

// handoff keeps plans between a retriever, which plans, and a model, which sends and sees only text.
type handoff struct {
	mu      sync.Mutex
	plans   []Plan // oldest first, at most maxHeld
	dropped int
}

// Hold keeps a plan until Claim finds its blocks in a prompt. The pilot holds a few hundred plans; older ones go.
func (p *Pilot) Hold(plan Plan) {
	h := &p.held
	h.mu.Lock()
	defer h.mu.Unlock()
	h.plans = append(h.plans, plan)
	if n := len(h.plans) - maxHeld; n > 0 {
		h.plans = slices.Delete(h.plans, 0, n)
		h.dropped += n
	}
}

// Claim returns the oldest held plan of the session whose blocks stand in text, all of them and in the plan's
// order, and stops holding it and older plans of that session with the same blocks. start and end are where they
// stand in text, from the first to the last block.
func (p *Pilot) Claim(session, text string) (plan Plan, start, end int, ok bool) {
	var found []region
	scanBlocks(text, func(r region) bool {
		found = append(found, r)
		return true
	})
	if len(found) == 0 {
		return Plan{}, 0, 0, false
	}
	h := &p.held
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.plans {
		c := &h.plans[i]
		if c.Session != session {
			continue
		}
		if at := standsIn(c, found); at >= 0 {
			plan = *c
			last := at + len(plan.Items) - 1
			h.plans = slices.Delete(h.plans, i, i+1)
			return plan, found[at].start, found[last].end, true
		}
	}
	return Plan{}, 0, 0, false
}

// standsIn returns where in found the plan's blocks begin, as one run, or −1.
func standsIn(p *Plan, found []region) int {
	n := len(p.Items)
	for at := 0; n > 0 && at+n <= len(found); at++ {
		same := true
		for i, it := range p.Items {
			if it.Ref != nil || it.Label != found[at+i].label || p.blocks[it.Index].Text != found[at+i].text {
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
	return len(h.plans), h.dropped
}
