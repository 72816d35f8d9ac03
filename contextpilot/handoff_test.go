package contextpilot_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// heldModel is what Hold and Claim say of themselves: a list, oldest first.
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
func retrieve(p *contextpilot.Pilot, session string, n int) (plans []contextpilot.Plan) {
	for i := range n {
		plan := p.Plan(contextpilot.Request{Blocks: texts("a", fmt.Sprint(session, i))})
		plan.Session = session
		p.Hold(plan)
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
			p := newPilot(t, contextpilot.Config{Now: func() time.Time { return now }})
			if expect {
				p.ExpectClaims()
			}
			retrieve(p, session, 10)
			now = now.Add(10*time.Minute - 1)
			st := p.Stats()
			equal(t, "plans, live, held before", []int64{10, 10, 10}, []int64{st.Plans, st.LiveRequests, st.Held})
			now = now.Add(1)
			want := contextpilot.Stats{Plans: 10, BlocksSent: 20, LiveRequests: 10, Held: 10}
			if expect {
				want = contextpilot.Stats{HeldDropped: 10, Unclaimed: 10}
			}
			st = p.Stats()
			equal(t, "afterwards", want, contextpilot.Stats{
				Plans: st.Plans, BlocksSent: st.BlocksSent, LiveRequests: st.LiveRequests, Held: st.Held, HeldDropped: st.HeldDropped, Unclaimed: st.Unclaimed,
			})
			if expect {
				equal(t, "index, expected tokens", []int64{0, 0, 0, 0}, []int64{st.Nodes, st.IndexTokens, st.PrefixExpected, st.Reordered})
			}
			if err := p.Check(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Plans and claims look for old plans, too: a call of Stats is not needed.
func TestPlanAndClaimTakeOldPlansBack(t *testing.T) {
	for name, use := range map[string]func(*contextpilot.Pilot){
		"plan":  func(p *contextpilot.Pilot) { p.Plan(contextpilot.Request{Blocks: texts("b")}) },
		"claim": func(p *contextpilot.Pilot) { p.Claim("t", "no block") },
	} {
		now := time.Unix(0, 0)
		p := newPilot(t, contextpilot.Config{Now: func() time.Time { return now }})
		p.ExpectClaims()
		old := retrieve(p, "s", 1)[0]
		now = now.Add(10 * time.Minute)
		use(p)
		equal(t, name, 0, p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: old.RequestID}))
	}
}

// An agent whose prompts do not show the blocks as planned: a plan goes when its conversation has called the model without it
// and retrieves again. What was claimed, what was served, and other conversations' plans stay.
func TestUnclaimedPlansOfAnAgent(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	claimed := retrieve(p, "s", 1)[0]
	if _, _, _, ok := p.Claim("s", claimed.Context()); !ok {
		t.Fatal("not claimed")
	}
	other := retrieve(p, "t", 2) // two at once, before the model is called
	for range 10 {
		retrieve(p, "s", 1)
		p.Claim("s", "I saw the documents in another message.")
	}
	st := p.Stats()
	equal(t, "plans, blocks, live, held, unclaimed", []int64{4, 8, 4, 3, 9}, []int64{st.Plans, st.BlocksSent, st.LiveRequests, st.Held, st.Unclaimed})
	for _, plan := range append(other, claimed) {
		equal(t, "live", 1, p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: plan.RequestID}))
	}
	p.Claim("t", "no block")
	retrieve(p, "t", 1) // drops those of other, which were sent without being claimed
	st = p.Stats()
	equal(t, "plans, live, held, unclaimed", []int64{5, 5, 2, 9}, []int64{st.Plans, st.LiveRequests, st.Held, st.Unclaimed})
	if err := p.Check(); err != nil {
		t.Error(err)
	}
}

// Two tenants have conversations of one name: what one retrieves takes nothing of the other's back, though a claim, which knows no
// tenant, has passed over both.
func TestUnclaimedPlansAreOfOneTenant(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	hold := func(tenant string) {
		plan := p.Plan(contextpilot.Request{Scope: contextpilot.Scope{Tenant: tenant}, Blocks: texts("a")})
		plan.Session = "s"
		p.Hold(plan)
	}
	hold("one")
	hold("two")
	p.Claim("s", "no block")
	hold("one")
	st := p.Stats()
	equal(t, "held, live, unclaimed", []int64{2, 2, 1}, []int64{st.Held, st.LiveRequests, st.Unclaimed})
}

// Of more plans than can be held the oldest were not sent, if a model claims.
func TestUnclaimedPlansGoForTheirNumber(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	p.ExpectClaims()
	retrieve(p, "", 300)
	st := p.Stats()
	equal(t, "plans, live, held, unclaimed", []int64{256, 256, 256, 44}, []int64{st.Plans, st.LiveRequests, st.Held, st.Unclaimed})
}

// What is planned anew in place of a plan counts once, in the same scope or another, and with what it became.
func TestReplanCountsOnce(t *testing.T) {
	for _, replica := range []string{"", "2"} {
		p := newPilot(t, contextpilot.Config{})
		old := p.Plan(contextpilot.Request{Blocks: texts("a", "b", "a")})
		plan := p.Replan(old, contextpilot.Request{Scope: contextpilot.Scope{Replica: replica}, Session: "s", Blocks: texts("a")})
		equal(t, "ID", old.RequestID, plan.RequestID)
		st := p.Stats()
		equal(t, "plans, blocks, left out, live", []int64{1, 1, 0, 1}, []int64{st.Plans, st.BlocksSent, st.BlocksLeftOut, st.LiveRequests})
		equal(t, "in its scope", 1, p.Observe(contextpilot.Event{Kind: contextpilot.Served, Scope: plan.Scope, Request: plan.RequestID}))
	}
}

// TestClaimPlannedAgain: a request that was planned twice under the pilot's own ID is one request: it is claimed once, and lives.
func TestClaimPlannedAgain(t *testing.T) {
	for _, session := range []string{"", "s"} {
		p := newPilot(t, contextpilot.Config{})
		plan := p.Plan(contextpilot.Request{Session: session, Blocks: texts("a", "b")})
		p.Hold(plan)
		again := p.Plan(plan.Request())
		p.Hold(again)
		got, _, _, ok := p.Claim(session, again.Context())
		if !ok || got.RequestID != plan.RequestID || p.Stats().Held != 0 {
			t.Errorf("session %q: claimed %q of %q, %d are still held", session, got.RequestID, plan.RequestID, p.Stats().Held)
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
		model := heldModel{passed: map[string]bool{}}
		labels := []string{"a", "b", "c", "d"}
		made := map[string]contextpilot.Plan{}
		for _, l := range labels {
			made[l] = p.Plan(contextpilot.Request{Blocks: blocks(l)})
		}
		count := 0
		label, session := rapid.SampledFrom(labels), rapid.SampledFrom([]string{"", "s", "t"})
		for range rapid.IntRange(1, 8).Draw(t, "rounds") {
			for i := range rapid.IntRange(0, 400).Draw(t, "holds") {
				plan := made[labels[i%len(labels)]]
				plan.Session = []string{"", "s", "t"}[i%3]
				plan.RequestID = fmt.Sprint("plan", count)
				count++
				p.Hold(plan)
				model.hold(plan)
			}
			for range rapid.IntRange(0, 20).Draw(t, "claims") {
				s, l := session.Draw(t, "session"), label.Draw(t, "label")
				text := made[l]
				got, _, _, ok := p.Claim(s, text.Context())
				if want := model.claim(s, l); got.RequestID != want || ok != (want != "") {
					t.Fatalf("Claim(%q, %s) = %q, want %q", s, l, got.RequestID, want)
				}
			}
			if st := p.Stats(); st.Held != int64(len(model.plans)) || st.HeldDropped != model.dropped {
				t.Fatalf("%d held, %d dropped, want %d, %d", st.Held, st.HeldDropped, len(model.plans), model.dropped)
			}
		}
	})
}

// BenchmarkHold is the cost of a plan that nobody claims, when as many are held as can be.
func BenchmarkHold(b *testing.B) {
	p, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		b.Fatal(err)
	}
	plan := p.Plan(contextpilot.Request{Blocks: blocks("a")})
	for range 1000 {
		p.Hold(plan)
	}
	b.ReportAllocs()
	for b.Loop() {
		p.Hold(plan)
	}
}

// A request that is planned again after its held plan has waited for too long, or when that goes to make room, keeps its new plan.
func TestReplannedRequestStays(t *testing.T) {
	now := time.Unix(0, 0)
	p := newPilot(t, contextpilot.Config{Now: func() time.Time { return now }})
	p.ExpectClaims()
	check := func(what string, again contextpilot.Plan) {
		t.Helper()
		p.Hold(again)
		plan, _, _, ok := p.Claim(again.Session, again.Context())
		n := p.Observe(contextpilot.Event{Kind: contextpilot.Served, Scope: plan.Scope, Request: plan.RequestID})
		if !ok || n != 1 {
			t.Errorf("%s: claimed %v, %d events applied", what, ok, n)
		}
	}
	late := contextpilot.Request{ID: "thread-7/turn-3", Session: "thread-7", Blocks: texts("a", "b")}
	p.Hold(p.Plan(late)) // the model was down
	now = now.Add(11 * time.Minute)
	check("later", p.Plan(late))
	if st := p.Stats(); st.LiveRequests != 1 || st.Plans != 1 {
		t.Errorf("%d live requests, %d plans, want 1 and 1", st.LiveRequests, st.Plans)
	}

	crowded := contextpilot.Request{ID: "x", Blocks: texts("c", "d")}
	p.Hold(p.Plan(crowded))
	for range 255 {
		p.Hold(p.Plan(contextpilot.Request{Blocks: texts("e")}))
	}
	again := p.Plan(crowded)
	p.Hold(p.Plan(contextpilot.Request{Blocks: texts("f")}))
	check("among many", again)
}

// Plans of a tenant that is dropped are not counted as sent.
func TestDroppedTenantsPlans(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	p.ExpectClaims()
	for range 3 {
		p.Hold(p.Plan(contextpilot.Request{Scope: contextpilot.Scope{Tenant: "t"}, Blocks: texts("a")}))
	}
	p.DropTenant("t")
	if st := p.Stats(); st.Plans != 0 || st.Unclaimed != 3 || st.Held != 0 {
		t.Errorf("%d plans, %d unclaimed, %d held", st.Plans, st.Unclaimed, st.Held)
	}
}
