package framework

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// heldOf plans blocks outside of a conversation and holds them for it.
func heldOf(o *Offers, session string, ids ...string) contextpilot.Plan {
	plan := o.pilot.Plan(contextpilot.Request{Blocks: texts(ids...)})
	plan.Session = session
	o.Offer(plan)
	return plan
}

// A chain sends a plan's blocks one by one: the plan was no prompt, and does not wait any more when each block was in a call.
func TestClaimPart(t *testing.T) {
	for _, session := range []string{"", "s"} {
		_, o := newOffers(t, contextpilot.Config{})
		held := heldOf(o, session, "a", "b", "c", "a")
		for i := range held.Items {
			if _, _, _, ok := o.claim("", session, held.RenderItem(i)); ok {
				t.Error("a block is claimed for the whole plan")
			}
			plan, items, ok := o.part("", session, "Use this:\n"+held.RenderItem(i)+"Why?")
			if !ok || plan.RequestID != held.RequestID {
				t.Fatalf("session %q, block %d: claimed %q, %v", session, i, plan.RequestID, ok)
			}
			equal(t, "items", []int{i}, items)
			left := 1
			if i == len(held.Items)-1 {
				left = 0
			}
			equal(t, "after a block", fmt.Sprintf("plans 0, blocks 0, expected 0, live 0, held %d, unclaimed 0", left), counts(o))
		}
		if _, _, ok := o.part("", session, held.RenderItem(0)); ok {
			t.Errorf("session %q: a plan is claimed whose blocks were all sent", session)
		}
	}
}

// Blocks in another order, or some of them, are a part; each counts once, and other blocks do not.
func TestClaimPartItems(t *testing.T) {
	_, o := newOffers(t, contextpilot.Config{Policy: "retrieval"})
	held := heldOf(o, "", "a", "b", "c")
	_, items, ok := o.part("", "", held.RenderItem(2)+"<doc x>\nAll about x.\n</doc>\n"+held.RenderItem(0)+held.RenderItem(2))
	equal(t, "items", []int{2, 0}, items)
	equal(t, "found", true, ok)
	for _, text := range []string{"", "no block", "<doc a>\nAnother text.\n</doc>\n"} {
		if _, _, ok := o.part("", "", text); ok {
			t.Errorf("claimed by %q", text)
		}
	}
	if _, _, ok := o.part("", "s", held.RenderItem(1)); ok {
		t.Error("claimed by a conversation that did not retrieve it")
	}
}

// Of several plans with a block it is one that no call has had it of yet: the oldest, as each may be on its way, or the newest of a
// conversation.
func TestClaimPartOfWhich(t *testing.T) {
	for session, want := range map[string][]string{"": {"0", "1", "0"}, "s": {"1", "0", "1"}} {
		p, o := newOffers(t, contextpilot.Config{})
		var text string
		for i := range 2 {
			plan := p.Plan(contextpilot.Request{ID: fmt.Sprint(i), Blocks: texts("a", fmt.Sprint("b", i))})
			plan.Session = session
			o.Offer(plan)
			text = "<doc a>\nAll about a.\n</doc>\n"
		}
		for _, id := range want {
			got, _, _ := o.part("", session, text)
			equal(t, "session "+session, id, got.RequestID)
		}
	}
}

// A plan that had left the index and is sent after all is there again as it was, and counted once.
func TestClaimAfterAll(t *testing.T) {
	for name, leave := range map[string]func(o *Offers, held *contextpilot.Plan){
		"part": func(o *Offers, held *contextpilot.Plan) {
			o.part("", "s", held.RenderItem(0))
		},
		"passed over": func(o *Offers, _ *contextpilot.Plan) {
			o.claim("", "s", "Which documents are good?")
			o.passedOver("", "s")
			o.passedOver("", "s")
		},
		"both": func(o *Offers, held *contextpilot.Plan) {
			o.claim("", "s", "Which documents are good?")
			o.passedOver("", "s")
			o.part("", "s", held.RenderItem(0))
		},
	} {
		p, o := newOffers(t, contextpilot.Config{Policy: "sorted", BlockSize: 1})
		heldOf(o, "other", "b", "a")
		before := counts(o)
		held := heldOf(o, "s", "c", "a", "b", "c")
		whole := counts(o)
		leave(o, &held)
		equal(t, name+": left", before, withHeld(o, 1))
		plan, _, _, ok := o.claim("", "s", held.Context())
		equal(t, name+": claimed", true, ok)
		equal(t, name+": the plan", held.Explain(), plan.Explain())
		equal(t, name+": entered", whole, withHeld(o, 2))
		equal(t, name+": applied", 1, p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: plan.RequestID}))
		again := p.Plan(contextpilot.Request{Blocks: texts("c", "a", "b")})
		if again.Prefix.Blocks != 3 {
			t.Errorf("%s: the index expects %+v", name, again.Prefix)
		}
	}
}

// What is passed over leaves the index once, whatever becomes of it; what was served, is of no conversation or of another one, or was
// held since the last call, stays.
func TestPassedOver(t *testing.T) {
	now := time.Unix(0, 0)
	p, o := newOffers(t, contextpilot.Config{})
	o.now = func() time.Time { return now }
	served, _ := heldOf(o, "s", "x"), heldOf(o, "s", "a", "b")
	p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: served.RequestID})
	heldOf(o, "", "c")
	heldOf(o, "t", "d")
	o.claim("", "s", "no block")
	heldOf(o, "t", "e")
	heldOf(o, "", "f")
	o.passedOver("", "s")
	o.passedOver("", "")
	o.passedOver("", "t")
	equal(t, "left", "plans 5, blocks 5, expected 0, live 5, held 6, unclaimed 0", counts(o))
	heldOf(o, "s", "g")
	equal(t, "displaced", "plans 6, blocks 6, expected 0, live 6, held 5, unclaimed 1", counts(o))
	o.claim("", "s", "no block")
	o.passedOver("", "s")
	now = now.Add(time.Hour)
	equal(t, "too old", "plans 1, blocks 1, expected 0, live 1, held 0, unclaimed 6", counts(o))
}

// Calls of one conversation at the same time: in the end each plan that was claimed is in the index, and counted.
func TestPassedOverAtOnce(t *testing.T) {
	p, o := newOffers(t, contextpilot.Config{})
	var wg sync.WaitGroup
	const n = 200
	for range 4 {
		wg.Go(func() {
			for i := range n {
				o.claim("", "s", "no block")
				o.passedOver("", "s")
				o.part("", "s", fmt.Sprintf("<doc a>\nAll about a.\n</doc>\n%d", i))
			}
		})
	}
	var claimed []contextpilot.Plan
	for i := range n {
		plan := heldOf(o, "s", "a", fmt.Sprint(i))
		if got, _, _, ok := o.claim("", "s", plan.Context()); ok {
			claimed = append(claimed, got)
		}
	}
	wg.Wait()
	st := p.Stats()
	equal(t, "plans, live", []int64{int64(len(claimed)), int64(len(claimed))}, []int64{st.Plans, st.LiveRequests})
	for _, plan := range claimed {
		equal(t, "served", 1, p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: plan.RequestID}))
	}
	if len(claimed) != n {
		t.Errorf("%d of %d plans were claimed", len(claimed), n)
	}
}
