package framework

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// newOffers returns the offers of a new pilot.
func newOffers(t *testing.T, cfg contextpilot.Config) (*contextpilot.Pilot, *Offers) {
	t.Helper()
	p, err := contextpilot.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p, OffersOf(p)
}

// texts returns blocks with IDs of their own.
func texts(ids ...string) []contextpilot.Block {
	blocks := make([]contextpilot.Block, len(ids))
	for i, id := range ids {
		blocks[i] = contextpilot.Block{ID: id, Text: "All about " + id + "."}
	}
	return blocks
}

func equal[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// heldModel is what offering and claiming say of themselves: a list, oldest first.
type heldModel struct {
	plans   []contextpilot.Plan
	passed  map[string]bool // request → its conversation has called the model since
	claims  bool
	dropped int64
}

func (m *heldModel) hold(plan contextpilot.Plan) {
	if m.claims && plan.Session != "" {
		n := len(m.plans)
		m.plans = slices.DeleteFunc(m.plans, func(p contextpilot.Plan) bool { return m.passed[p.RequestID] && p.Session == plan.Session })
		m.dropped += int64(n - len(m.plans))
	}
	m.plans = append(m.plans, plan)
	if len(m.plans) > 256 {
		m.plans = slices.Delete(m.plans, 0, 1)
		m.dropped++
	}
}

// claim returns the ID of the plan that a prompt with the block gets, or "".
func (m *heldModel) claim(session, block string) (id string) {
	m.claims = true
	fits := func(p contextpilot.Plan) bool { return p.Session == session && p.Items[0].Label == block }
	if session == "" {
		if i := slices.IndexFunc(m.plans, fits); i >= 0 {
			id = m.plans[i].RequestID
			m.plans = slices.Delete(m.plans, i, i+1)
		}
		return id
	}
	m.plans = slices.DeleteFunc(m.plans, func(p contextpilot.Plan) bool {
		if fits(p) {
			id = p.RequestID
		}
		return fits(p)
	})
	for _, p := range m.plans {
		if p.Session == session {
			m.passed[p.RequestID] = true
		}
	}
	return id
}

// retrieve asks n different questions in a session: each is planned and held, none is sent.
func retrieve(o *Offers, session string, n int) (plans []contextpilot.Plan) {
	for i := range n {
		plan := o.pilot.Plan(contextpilot.Request{Blocks: texts("a", fmt.Sprint(session, i))})
		plan.Session = session
		o.Offer(plan)
		plans = append(plans, plan)
	}
	return plans
}

// A retriever is asked ten times and a model that claims is never called: ten minutes later none of it is in the index or
// counted. Without such a model the plans are what was sent, and stay.
func TestUnclaimedPlansGoForTheirAge(t *testing.T) {
	for _, session := range []string{"", "s"} {
		for _, expect := range []bool{true, false} {
			now := time.Unix(0, 0)
			p, o := newOffers(t, contextpilot.Config{})
			o.now = func() time.Time { return now }
			if expect {
				o.expectClaims()
			}
			retrieve(o, session, 10)
			now = now.Add(10*time.Minute - 1)
			st := p.Stats()
			equal(t, "plans, live, held before", []int64{10, 10, 10}, []int64{st.Plans, st.LiveRequests, o.Stats().Held})
			now = now.Add(1)
			want, plans := OfferStats{Held: 10}, int64(10)
			if expect {
				want, plans = OfferStats{Dropped: 10, Unclaimed: 10}, 0
			}
			equal(t, "afterwards", want, o.Stats())
			st = p.Stats()
			equal(t, "plans, blocks, live", []int64{plans, 2 * plans, plans}, []int64{st.Plans, st.BlocksSent, st.LiveRequests})
			if expect {
				equal(t, "index, expected tokens", []int64{0, 0, 0, 0}, []int64{st.Nodes, st.IndexTokens, st.PrefixExpected, st.Reordered})
			}
		}
	}
}

// An agent whose prompts do not show the blocks as planned: a plan goes when its conversation has called the model without it
// and retrieves again. What was claimed, what was served, and other conversations' plans stay.
func TestUnclaimedPlansOfAnAgent(t *testing.T) {
	p, o := newOffers(t, contextpilot.Config{})
	claimed := retrieve(o, "s", 1)[0]
	if _, _, _, ok := o.claim("", "s", claimed.Context()); !ok {
		t.Fatal("not claimed")
	}
	other := retrieve(o, "t", 2) // two at once, before the model is called
	for range 10 {
		retrieve(o, "s", 1)
		o.claim("", "s", "I saw the documents in another message.")
	}
	st := p.Stats()
	equal(t, "plans, blocks, live, held, unclaimed", []int64{4, 8, 4, 3, 9}, []int64{
		st.Plans, st.BlocksSent, st.LiveRequests,
		o.Stats().Held, o.Stats().Unclaimed,
	})
	for _, plan := range append(other, claimed) {
		equal(t, "live", 1, p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: plan.RequestID}))
	}
	o.claim("", "t", "no block")
	retrieve(o, "t", 1) // drops those of other, which were sent without being claimed
	st = p.Stats()
	equal(t, "plans, live, held, unclaimed", []int64{5, 5, 2, 9}, []int64{st.Plans, st.LiveRequests, o.Stats().Held, o.Stats().Unclaimed})
}

// Two tenants have conversations of one name: what one retrieves takes nothing of the other's back, though a claim, which knows no
// tenant, has passed over both.
func TestUnclaimedPlansAreOfOneTenant(t *testing.T) {
	p, o := newOffers(t, contextpilot.Config{})
	hold := func(tenant string) {
		plan := p.Plan(contextpilot.Request{Scope: contextpilot.Scope{Tenant: tenant}, Blocks: texts("a")})
		plan.Session = "s"
		o.Offer(plan)
	}
	hold("one")
	hold("two")
	o.claim("", "s", "no block")
	hold("one")
	st := p.Stats()
	equal(t, "held, live, unclaimed", []int64{2, 2, 1}, []int64{o.Stats().Held, st.LiveRequests, o.Stats().Unclaimed})
}

// Of more plans than can be held the oldest were not sent, if a model claims.
func TestUnclaimedPlansGoForTheirNumber(t *testing.T) {
	p, o := newOffers(t, contextpilot.Config{})
	o.expectClaims()
	retrieve(o, "", 300)
	st := p.Stats()
	equal(t, "plans, live, held, unclaimed", []int64{256, 256, 256, 44}, []int64{
		st.Plans, st.LiveRequests, o.Stats().Held,
		o.Stats().Unclaimed,
	})
}

// TestClaimPlannedAgain: a request that was planned twice under the pilot's own ID is one request: it is claimed once, and lives.
func TestClaimPlannedAgain(t *testing.T) {
	for _, session := range []string{"", "s"} {
		p, o := newOffers(t, contextpilot.Config{})
		plan := p.Plan(contextpilot.Request{Session: session, Blocks: texts("a", "b")})
		o.Offer(plan)
		again := p.Plan(plan.Request())
		o.Offer(again)
		got, _, _, ok := o.claim("", session, again.Context())
		if !ok || got.RequestID != plan.RequestID || o.Stats().Held != 0 {
			t.Errorf("session %q: claimed %q of %q, %d are still held", session, got.RequestID, plan.RequestID, o.Stats().Held)
		}
		if n := p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: got.RequestID}); n != 1 {
			t.Errorf("session %q: the request is not known any more", session)
		}
	}
}

// Plans are found, dropped and counted as in a plain list, however many come and go.
func TestHeldPlansAreAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := contextpilot.New(contextpilot.Config{})
		if err != nil {
			t.Fatal(err)
		}
		o := OffersOf(p)
		model := heldModel{passed: map[string]bool{}}
		labels := []string{"a", "b", "c", "d"}
		made := map[string]contextpilot.Plan{}
		for _, l := range labels {
			made[l] = p.Plan(contextpilot.Request{Blocks: texts(l)})
		}
		count := 0
		label, session := rapid.SampledFrom(labels), rapid.SampledFrom([]string{"", "s", "t"})
		for range rapid.IntRange(1, 8).Draw(t, "rounds") {
			for i := range rapid.IntRange(0, 400).Draw(t, "holds") {
				plan := made[labels[i%len(labels)]]
				plan.Session = []string{"", "s", "t"}[i%3]
				plan.RequestID = fmt.Sprint("plan", count)
				count++
				o.Offer(plan)
				model.hold(plan)
			}
			for range rapid.IntRange(0, 20).Draw(t, "claims") {
				s, l := session.Draw(t, "session"), label.Draw(t, "label")
				text := made[l]
				got, _, _, ok := o.claim("", s, text.Context())
				if want := model.claim(s, l); got.RequestID != want || ok != (want != "") {
					t.Fatalf("Claim(%q, %s) = %q, want %q", s, l, got.RequestID, want)
				}
			}
			if o.Stats().Held != int64(len(model.plans)) || o.Stats().Dropped != model.dropped {
				t.Fatalf("%d held, %d dropped, want %d, %d", o.Stats().Held, o.Stats().Dropped, len(model.plans), model.dropped)
			}
		}
	})
}

// BenchmarkOffer is the cost of a plan that no call claims, when as many are held as can be.
func BenchmarkOffer(b *testing.B) {
	p, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		b.Fatal(err)
	}
	o := OffersOf(p)
	plan := p.Plan(contextpilot.Request{Blocks: texts("a")})
	for range 1000 {
		o.Offer(plan)
	}
	b.ReportAllocs()
	for b.Loop() {
		o.Offer(plan)
	}
}

// A tenant that offers very much makes room for itself alone.
func TestOffersOfABusyTenant(t *testing.T) {
	p, o := newOffers(t, contextpilot.Config{})
	offer := func(tenant string) contextpilot.Plan {
		plan := p.Plan(contextpilot.Request{Scope: contextpilot.Scope{Tenant: tenant}, Blocks: texts("a")})
		o.Offer(plan)
		return plan
	}
	quiet := offer("quiet")
	for range 2 * maxOffers {
		offer("busy")
	}
	got, _, _, ok := o.claim("quiet", "", quiet.Context())
	if !ok || got.RequestID != quiet.RequestID || o.Stats().Held != maxOffers-1 {
		t.Errorf("claimed %q of %q, %d held", got.RequestID, quiet.RequestID, o.Stats().Held)
	}
}

// Plans of a tenant that is dropped are not counted as sent.
func TestDroppedTenantsPlans(t *testing.T) {
	p, o := newOffers(t, contextpilot.Config{})
	o.expectClaims()
	for range 3 {
		o.Offer(p.Plan(contextpilot.Request{Scope: contextpilot.Scope{Tenant: "t"}, Blocks: texts("a")}))
	}
	o.DropTenant("t")
	if st := p.Stats(); st.Plans != 0 || o.Stats().Unclaimed != 3 || o.Stats().Held != 0 {
		t.Errorf("%d plans, %d unclaimed, %d held", st.Plans, o.Stats().Unclaimed, o.Stats().Held)
	}
}

// counts are the numbers that a plan which is not sent must not be in.
func counts(o *Offers) string { return withHeld(o, o.Stats().Held) }

// withHeld is counts with another number of held plans.
func withHeld(o *Offers, held int64) string {
	st := o.pilot.Stats()
	return fmt.Sprintf("plans %d, blocks %d, expected %d, live %d, held %d, unclaimed %d",
		st.Plans, st.BlocksSent, st.PrefixExpected, st.LiveRequests, held, o.Stats().Unclaimed)
}
