package contextpilot_test

import (
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// TestBatchTurns: a batch with two turns of a conversation leaves it as two plans would.
func TestBatchTurns(t *testing.T) {
	block := []contextpilot.Block{{ID: "x", Text: "text"}}
	p, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		t.Fatal(err)
	}
	batch, err := p.PlanBatch(t.Context(), []contextpilot.Request{{ID: "a", Session: "s", Blocks: block}, {ID: "b", Session: "s", Blocks: block}})
	if err != nil {
		t.Fatal(err)
	}
	plan := p.Plan(contextpilot.Request{ID: "c", Session: "s", Prior: []string{batch.Plans[1].Prompt("?")}, Blocks: block})
	if len(plan.Items) != 1 || plan.Items[0].Ref == nil || *plan.Items[0].Ref != seeing("x", 2, "b") {
		t.Errorf("%+v, want a reference to turn 2, request b", plan.Items)
	}
}

// TestBatchOfExpiredConversation: what a conversation has shown is forgotten with it, in a batch too.
func TestBatchOfExpiredConversation(t *testing.T) {
	block := []contextpilot.Block{{ID: "x", Text: "text"}}
	now := time.Unix(1000, 0)
	p, err := contextpilot.New(contextpilot.Config{SessionTTL: time.Minute, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	first := p.Plan(contextpilot.Request{ID: "a", Session: "s", Blocks: block})
	now = now.Add(time.Hour)
	batch, err := p.PlanBatch(t.Context(), []contextpilot.Request{{ID: "b", Session: "s", Prior: []string{first.Prompt("?")}, Blocks: block}})
	if err != nil {
		t.Fatal(err)
	}
	if plan := batch.Plans[0]; len(plan.Items) != 1 || plan.Items[0].Ref != nil || plan.Turn != 1 {
		t.Errorf("turn %d, %+v: want the block in full in turn 1", plan.Turn, plan.Items)
	}
}

// TestTakenBackOfOneID: an answer is asked for again under the ID of its request, and fails: the first turn stays.
func TestTakenBackOfOneID(t *testing.T) {
	p, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		t.Fatal(err)
	}
	x, y := []contextpilot.Block{{ID: "x", Text: "one"}}, []contextpilot.Block{{ID: "y", Text: "two"}}
	first := p.Plan(contextpilot.Request{ID: "a", Session: "s", Blocks: x})
	p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: "a", Output: 5})
	prior := []string{first.Prompt("?")}
	p.Plan(contextpilot.Request{ID: "a", Session: "s", Prior: prior, Blocks: y})
	p.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: "a"})
	plan := p.Plan(contextpilot.Request{ID: "b", Session: "s", Prior: prior, Blocks: x})
	if len(plan.Items) != 1 || plan.Items[0].Ref == nil || plan.Items[0].Ref.Turn != 1 || plan.Turn != 2 {
		t.Errorf("turn %d, %+v: want turn 2 with a reference to turn 1", plan.Turn, plan.Items)
	}
}

// TestBatchPlannedAgain: a batch that never reached the engine and is planned again under its IDs finds nothing of itself,
// and tells the model nothing that does not pay.
func TestBatchPlannedAgain(t *testing.T) {
	for _, session := range []string{"", "s"} {
		p, q := newPilot(t, contextpilot.Config{Policy: "sorted"}), newPilot(t, contextpilot.Config{Policy: "sorted"})
		req := contextpilot.Request{ID: "1", Session: session, Blocks: big("b", "a")}
		for range 2 {
			want := q.Plan(req)
			b, err := p.PlanBatch(t.Context(), []contextpilot.Request{req})
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "planned in a batch, session "+session, want.Explain(), b.Plans[0].Explain())
		}
	}
}

// TestBatchForetells: of a later turn in a batch, too, it is told what retrieval order would find.
func TestBatchForetells(t *testing.T) {
	p, q := newPilot(t, contextpilot.Config{Policy: "retrieval"}), newPilot(t, contextpilot.Config{Policy: "retrieval"})
	reqs := []contextpilot.Request{{ID: "1", Session: "s", Blocks: big("a", "b")}, {ID: "2", Session: "s", Blocks: big("c")}}
	first := q.Plan(reqs[0])
	reqs[1].Prior = []string{first.Prompt("?"), "answer"}
	want := q.Plan(reqs[1])
	b, err := p.PlanBatch(t.Context(), reqs)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the second turn", want.Explain(), b.Plans[1].Explain())
	equal(t, "as retrieved", want.Prefix.Tokens, b.Plans[1].Why.Plain)
}
