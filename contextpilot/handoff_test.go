package contextpilot_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// heldModel is what Hold and Claim say of themselves: a list, oldest first.
type heldModel struct {
	plans   []contextpilot.Plan
	dropped int64
}

func (m *heldModel) hold(plan contextpilot.Plan) {
	m.plans = append(m.plans, plan)
	if len(m.plans) > 256 {
		m.plans = slices.Delete(m.plans, 0, 1)
		m.dropped++
	}
}

// claim returns the ID of the plan that a prompt with the block gets, or "".
func (m *heldModel) claim(session, block string) (id string) {
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
	return id
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
		var model heldModel
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
