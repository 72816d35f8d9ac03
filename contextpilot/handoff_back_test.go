package contextpilot_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// counts are the numbers that a plan which is not sent must not be in.
func counts(p *contextpilot.Pilot) string { return withHeld(p, p.Stats().Held) }

// withHeld is counts with another number of held plans.
func withHeld(p *contextpilot.Pilot, held int64) string {
	st := p.Stats()
	return fmt.Sprintf("plans %d, blocks %d, left out %d, expected %d, reordered %d, live %d, held %d, unclaimed %d",
		st.Plans, st.BlocksSent, st.BlocksLeftOut, st.PrefixExpected, st.Reordered, st.LiveRequests, held, st.Unclaimed)
}

// heldOf plans blocks outside of a conversation and holds them for it.
func heldOf(p *contextpilot.Pilot, session string, ids ...string) contextpilot.Plan {
	plan := p.Plan(contextpilot.Request{Blocks: texts(ids...)})
	plan.Session = session
	p.Hold(plan)
	return plan
}

// A chain sends a plan's blocks one by one: the plan was no prompt, and does not wait any more when each block was in a call.
func TestClaimPart(t *testing.T) {
	for _, session := range []string{"", "s"} {
		p := newPilot(t, contextpilot.Config{})
		held := heldOf(p, session, "a", "b", "c", "a")
		for i := range held.Items {
			if _, _, _, ok := p.Claim(session, held.RenderItem(i)); ok {
				t.Error("a block is claimed for the whole plan")
			}
			plan, items, ok := p.ClaimPart(session, "Use this:\n"+held.RenderItem(i)+"Why?")
			if !ok || plan.RequestID != held.RequestID {
				t.Fatalf("session %q, block %d: claimed %q, %v", session, i, plan.RequestID, ok)
			}
			equal(t, "items", []int{i}, items)
			left := 1
			if i == len(held.Items)-1 {
				left = 0
			}
			equal(t, "after a block", fmt.Sprintf("plans 0, blocks 0, left out 0, expected 0, reordered 0, live 0, held %d, unclaimed 0", left), counts(p))
		}
		if _, _, ok := p.ClaimPart(session, held.RenderItem(0)); ok {
			t.Errorf("session %q: a plan is claimed whose blocks were all sent", session)
		}
		if err := p.Check(); err != nil {
			t.Error(err)
		}
	}
}

// Blocks in another order, or some of them, are a part; each counts once, and other blocks do not.
func TestClaimPartItems(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Policy: "retrieval"})
	held := heldOf(p, "", "a", "b", "c")
	_, items, ok := p.ClaimPart("", held.RenderItem(2)+"<doc x>\nAll about x.\n</doc>\n"+held.RenderItem(0)+held.RenderItem(2))
	equal(t, "items", []int{2, 0}, items)
	equal(t, "found", true, ok)
	for _, text := range []string{"", "no block", "<doc a>\nAnother text.\n</doc>\n"} {
		if _, _, ok := p.ClaimPart("", text); ok {
			t.Errorf("claimed by %q", text)
		}
	}
	if _, _, ok := p.ClaimPart("s", held.RenderItem(1)); ok {
		t.Error("claimed by a conversation that did not retrieve it")
	}
}

// Of several plans with a block it is one that no call has had it of yet: the oldest, as each may be on its way, or the newest of a
// conversation.
func TestClaimPartOfWhich(t *testing.T) {
	for session, want := range map[string][]string{"": {"0", "1", "0"}, "s": {"1", "0", "1"}} {
		p := newPilot(t, contextpilot.Config{})
		var text string
		for i := range 2 {
			plan := p.Plan(contextpilot.Request{ID: fmt.Sprint(i), Blocks: texts("a", fmt.Sprint("b", i))})
			plan.Session = session
			p.Hold(plan)
			text = "<doc a>\nAll about a.\n</doc>\n"
		}
		for _, id := range want {
			got, _, _ := p.ClaimPart(session, text)
			equal(t, "session "+session, id, got.RequestID)
		}
	}
}

// A plan that had left the index and is sent after all is there again as it was, and counted once.
func TestClaimAfterAll(t *testing.T) {
	for name, leave := range map[string]func(p *contextpilot.Pilot, held *contextpilot.Plan){
		"part": func(p *contextpilot.Pilot, held *contextpilot.Plan) {
			p.ClaimPart("s", held.RenderItem(0))
		},
		"passed over": func(p *contextpilot.Pilot, _ *contextpilot.Plan) {
			p.Claim("s", "Which documents are good?")
			p.PassedOver("s")
			p.PassedOver("s")
		},
		"both": func(p *contextpilot.Pilot, held *contextpilot.Plan) {
			p.Claim("s", "Which documents are good?")
			p.PassedOver("s")
			p.ClaimPart("s", held.RenderItem(0))
		},
	} {
		p := newPilot(t, contextpilot.Config{Policy: "sorted", BlockSize: 1, Tokenizer: exact{}})
		heldOf(p, "other", "b", "a")
		before := counts(p)
		held := heldOf(p, "s", "c", "a", "b", "c")
		whole := counts(p)
		leave(p, &held)
		equal(t, name+": left", before, withHeld(p, 1))
		plan, _, _, ok := p.Claim("s", held.Context())
		equal(t, name+": claimed", true, ok)
		equal(t, name+": the plan", held.Explain(), plan.Explain())
		equal(t, name+": entered", whole, withHeld(p, 2))
		equal(t, name+": applied", 1, p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: plan.RequestID}))
		again := p.Plan(contextpilot.Request{Blocks: texts("c", "a", "b")})
		if again.Prefix.Blocks != 3 {
			t.Errorf("%s: the index expects %+v", name, again.Prefix)
		}
		if err := p.Check(); err != nil {
			t.Error(err)
		}
	}
}

// What is passed over leaves the index once, whatever becomes of it; what was served, is of no conversation or of another one, or was
// held since the last call, stays.
func TestPassedOver(t *testing.T) {
	now := time.Unix(0, 0)
	p := newPilot(t, contextpilot.Config{Now: func() time.Time { return now }})
	served, _ := heldOf(p, "s", "x"), heldOf(p, "s", "a", "b")
	p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: served.RequestID})
	heldOf(p, "", "c")
	heldOf(p, "t", "d")
	p.Claim("s", "no block")
	heldOf(p, "t", "e")
	heldOf(p, "", "f")
	p.PassedOver("s")
	p.PassedOver("")
	p.PassedOver("t")
	equal(t, "left", "plans 5, blocks 5, left out 0, expected 0, reordered 0, live 5, held 6, unclaimed 0", counts(p))
	heldOf(p, "s", "g")
	equal(t, "displaced", "plans 6, blocks 6, left out 0, expected 0, reordered 0, live 6, held 5, unclaimed 1", counts(p))
	p.Claim("s", "no block")
	p.PassedOver("s")
	now = now.Add(time.Hour)
	equal(t, "too old", "plans 1, blocks 1, left out 0, expected 0, reordered 0, live 1, held 0, unclaimed 6", counts(p))
}

// A request that is planned again under its own ID while its held plan is out of the index is one request.
func TestPlannedAgainWhileOut(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	for range 2 {
		plan := p.Plan(contextpilot.Request{ID: "1", Blocks: texts("a", "b")})
		plan.Session = "s"
		p.Hold(plan)
		p.Claim("s", "no block")
		p.PassedOver("s")
	}
	equal(t, "out", "plans 0, blocks 0, left out 0, expected 0, reordered 0, live 0, held 1, unclaimed 0", counts(p))
}

// Calls of one conversation at the same time: in the end each plan that was claimed is in the index, and counted.
func TestPassedOverAtOnce(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	var wg sync.WaitGroup
	const n = 200
	for range 4 {
		wg.Go(func() {
			for i := range n {
				p.Claim("s", "no block")
				p.PassedOver("s")
				p.ClaimPart("s", fmt.Sprintf("<doc a>\nAll about a.\n</doc>\n%d", i))
			}
		})
	}
	var claimed []contextpilot.Plan
	for i := range n {
		plan := heldOf(p, "s", "a", fmt.Sprint(i))
		if got, _, _, ok := p.Claim("s", plan.Context()); ok {
			claimed = append(claimed, got)
		}
	}
	wg.Wait()
	st := p.Stats()
	equal(t, "plans, live", []int64{int64(len(claimed)), int64(len(claimed))}, []int64{st.Plans, st.LiveRequests})
	for _, plan := range claimed {
		equal(t, "served", 1, p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: plan.RequestID}))
	}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	if len(claimed) != n {
		t.Errorf("%d of %d plans were claimed", len(claimed), n)
	}
}
