package framework

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/prompt/markup"
)

// Offers keeps plans between a retriever, which plans, and a model, which sends and sees only text. All wrappers of a pilot share
// one. It holds a few hundred plans; older ones of the tenant that has most go. Safe for concurrent use.
//
// Where no model claims plans, each counts as sent. Where one does, see [NewCalls], a plan that is not claimed was not sent: it is
// taken back ([contextpilot.Pilot.TakeBack]) if its conversation calls the model without it and then offers another plan, after ten
// minutes, or when it goes to make room.
type Offers struct {
	pilot *contextpilot.Pilot
	now   func() time.Time

	mu     sync.Mutex // guards all below
	claims bool       // models claim
	plans  []*offer   // oldest first, at most maxOffers
	counts OfferStats
}

// OfferStats counts plans that were offered.
type OfferStats struct {
	Held      int64 // now
	Dropped   int64 // let go for their age, their number, or the next plan of their conversation
	Unclaimed int64 // counted as not sent: those of Dropped, where models claim, and older ones of which a claim had the choice
}

// offer is a plan that waits for its prompt.
type offer struct {
	contextpilot.Plan
	since  time.Time
	passed bool   // its conversation has called the model since, and did not claim it
	back   bool   // it was taken back
	sent   []bool // which of the items calls had without the others; nil: none
}

const (
	maxOffers = 256
	offerFor  = 10 * time.Minute // longer than any step between a retriever and a model takes
)

// OffersOf returns the offers of a pilot. They last as long as the caller, or a model's wrapper, keeps them.
func OffersOf(pilot *contextpilot.Pilot) *Offers { return &sharedOf(pilot).offers }

// Offer keeps a plan until a model's call is found to have its blocks. It takes the place of one of the same request. Where
// requests have IDs of the caller's, one that is planned again must be offered again before other calls.
func (o *Offers) Offer(plan contextpilot.Plan) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.take(func(c *offer) bool { return same(&c.Plan, &plan) }) // it is not in the index any more
	o.expire()
	if o.claims && plan.Session != "" {
		o.drop(o.take(func(c *offer) bool {
			return c.passed && c.Session == plan.Session && c.Scope.Tenant == plan.Scope.Tenant
		})...)
	}
	o.plans = append(o.plans, &offer{Plan: plan, since: o.now()})
	if len(o.plans) > maxOffers {
		i := o.crowded()
		o.drop(o.plans[i])
		o.plans = slices.Delete(o.plans, i, i+1)
	}
}

// crowded returns the oldest plan of the tenant that has most: no tenant's plans go to make room for another's that has more.
func (o *Offers) crowded() int {
	first := o.plans[0].Scope.Tenant
	if !slices.ContainsFunc(o.plans, func(c *offer) bool { return c.Scope.Tenant != first }) {
		return 0
	}
	of := map[string]int{}
	for _, c := range o.plans {
		of[c.Scope.Tenant]++
	}
	most := first
	for _, c := range o.plans { // of several, the one that waits for longest
		if of[c.Scope.Tenant] > of[most] {
			most = c.Scope.Tenant
		}
	}
	return slices.IndexFunc(o.plans, func(c *offer) bool { return c.Scope.Tenant == most })
}

// DropTenant drops the plans of a tenant.
func (o *Offers) DropTenant(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drop(o.take(func(c *offer) bool { return c.Scope.Tenant == name })...)
}

// Stats returns the counts.
func (o *Offers) Stats() OfferStats {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expire()
	o.counts.Held = int64(len(o.plans))
	return o.counts
}

// expectClaims says that plans are claimed before they are sent.
func (o *Offers) expectClaims() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.claims = true
}

// take stops holding plans and returns them, oldest first. The lock is held, as in all that follow.
func (o *Offers) take(which func(*offer) bool) (taken []*offer) {
	o.plans = slices.DeleteFunc(o.plans, func(c *offer) bool {
		if !which(c) {
			return false
		}
		taken = append(taken, c)
		return true
	})
	return taken
}

// drop counts plans that are not held any more, and takes them back if models claim.
func (o *Offers) drop(plans ...*offer) {
	o.counts.Dropped += int64(len(plans))
	for _, c := range plans {
		if o.claims {
			o.unclaimed(c)
		}
	}
}

// unclaimed takes a plan back that was not claimed.
func (o *Offers) unclaimed(c *offer) {
	if c.sent == nil && (c.back || o.pilot.TakeBack(&c.Plan)) {
		o.counts.Unclaimed++
	}
}

// expire drops the plans that have waited for too long.
func (o *Offers) expire() {
	if !o.claims {
		return
	}
	n := 0
	for now := o.now(); n < len(o.plans) && now.Sub(o.plans[n].since) >= offerFor; {
		n++
	}
	o.drop(o.plans[:n]...)
	o.plans = slices.Delete(o.plans, 0, n)
}

// claim finds the plan whose blocks all stand in a text, in the plan's order, and stops holding it. It looks at the plans of the tenant's
// conversation only. start and end are the first byte of the first block and the end of the last. Several plans may fit. With a
// conversation the newest is returned, since a conversation has one turn at a time, and the older ones are taken back. Without one it is
// a plan with most blocks, and of these the oldest, since each may be on its way to a model. A plan that was taken back is entered again.
func (o *Offers) claim(tenant, conversation, text string) (plan contextpilot.Plan, start, end int, ok bool) {
	found := slices.Collect(markup.Regions(text))
	c := o.claimed(tenant, conversation, found)
	if c == nil {
		return plan, 0, 0, false
	}
	if c.back {
		o.enterAgain(&c.Plan)
	}
	at := standsIn(&c.Plan, found)
	return c.Plan, found[at].Start, found[at+len(c.Items)-1].End, true
}

func (o *Offers) claimed(tenant, conversation string, found []markup.Region) *offer {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.claims = true
	o.expire()
	if conversation == "" {
		c := o.longest(tenant, found)
		if c != nil {
			o.take(func(x *offer) bool { return x == c })
		}
		return c
	}
	fit := o.take(func(c *offer) bool {
		if !c.of(tenant, conversation) {
			return false
		}
		c.passed = true
		return standsIn(&c.Plan, found) >= 0
	})
	if len(fit) == 0 {
		return nil
	}
	last := len(fit) - 1
	for _, c := range fit[:last] {
		o.unclaimed(c)
	}
	return fit[last]
}

// longest returns which of the plans without a conversation has most blocks of those that stand in found, or nil; of several it is the
// oldest. A plan with fewer blocks may be a part of it by chance.
func (o *Offers) longest(tenant string, found []markup.Region) (longest *offer) {
	for _, c := range o.plans {
		if c.of(tenant, "") && (longest == nil || len(c.Items) > len(longest.Items)) && standsIn(&c.Plan, found) >= 0 {
			longest = c
		}
	}
	return longest
}

// enterAgain enters a plan that was taken back, as it stands.
func (o *Offers) enterAgain(plan *contextpilot.Plan) {
	req := plan.Request()
	req.Session, req.Fixed, req.Budget, req.Room = "", true, 0, 0
	if hint := plan.Hint; hint != "" {
		req.Query = hint + "\n" + req.Query
	}
	req.Query = plan.RenderEcho() + req.Query
	req.Blocks = inPlace(plan)
	again := o.pilot.Plan(req)
	plan.Prefix, plan.End = again.Prefix, again.End
}

// passedOver takes back plans that calls of their conversation's model were made without. They are held on, and one that is claimed
// later is entered again. Nothing happens without a conversation: which call was to have such a plan is not known.
func (o *Offers) passedOver(tenant, conversation string) {
	if conversation == "" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.plans {
		if c.passed && c.of(tenant, conversation) {
			c.back = c.back || o.pilot.TakeBack(&c.Plan)
		}
	}
}

// part is claim for a call that has some blocks of a held plan by themselves, as each step of a chain that maps over documents has one.
// It returns the plan and which of its Items stand in the text, in the order in which they stand there. As one prompt the plan is not
// sent: it is taken back, and what is sent is the caller's to plan. It is held until each of its blocks was in a call, or
// another call has them all after all. Of several plans it is the one with most blocks that no call has had yet, then with
// most blocks; then the oldest if conversation is empty, else the newest.
func (o *Offers) part(tenant, conversation, text string) (plan contextpilot.Plan, items []int, ok bool) {
	found := slices.Collect(markup.Regions(text))
	o.mu.Lock()
	defer o.mu.Unlock()
	var best *offer
	fresh := 0
	for _, c := range o.plans {
		if !c.of(tenant, conversation) {
			continue
		}
		here := standing(&c.Plan, found)
		n := c.unsent(here)
		if more := cmp.Or(cmp.Compare(n, fresh), cmp.Compare(len(here), len(items))); more > 0 || more == 0 && len(here) > 0 &&
			conversation != "" {
			best, fresh, items = c, n, here
		}
	}
	if best == nil {
		return plan, nil, false
	}
	best.back = best.back || o.pilot.TakeBack(&best.Plan)
	if best.sent == nil {
		best.sent = make([]bool, len(best.Items))
	}
	for _, i := range items {
		best.sent[i] = true
	}
	if !slices.Contains(best.sent, false) {
		o.take(func(c *offer) bool { return c == best })
	}
	return best.Plan, items, true
}

// of reports whether a plan may be a tenant's in a conversation. Retrievers and models need not know the tenant: "" is any.
func (c *offer) of(tenant, conversation string) bool {
	own := c.Scope.Tenant
	return c.Session == conversation && (own == tenant || own == "" || tenant == "")
}

// unsent returns how many of the items no call has had by themselves.
func (c *offer) unsent(items []int) (n int) {
	for _, i := range items {
		if c.sent == nil || !c.sent[i] {
			n++
		}
	}
	return n
}

// same reports whether two plans are of one request, which may have been planned twice.
func same(a, b *contextpilot.Plan) bool { return a.RequestID == b.RequestID && a.Scope == b.Scope }

// is reports whether an item of a plan is the block that was found.
func is(p *contextpilot.Plan, it contextpilot.Item, found *markup.Region) bool {
	return it.Ref == nil && it.Label == found.Label && p.Block(it.Index).Text == found.Text
}

// standsIn returns where in found the plan's blocks begin, as one run, or −1.
func standsIn(p *contextpilot.Plan, found []markup.Region) int {
	n := len(p.Items)
	for at := 0; n > 0 && at+n <= len(found); at++ {
		i := 0
		for i < n && is(p, p.Items[i], &found[at+i]) {
			i++
		}
		if i == n {
			return at
		}
	}
	return -1
}

// standing returns which items of a plan stand in found, each once.
func standing(p *contextpilot.Plan, found []markup.Region) (items []int) {
	for k := range found {
		for i, it := range p.Items {
			if is(p, it, &found[k]) && !slices.Contains(items, i) {
				items = append(items, i)
				break
			}
		}
	}
	return items
}
