package contextpilot_test

import (
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// TestBatchTurns: a batch with two turns of a conversation leaves it as two plans would.
func TestBatchTurns(t *testing.T) {
	block := []contextpilot.Block{{ID: "x", Text: "text"}}
	p, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		t.Fatal(err)
	}
	batch, err := p.PlanBatch(t.Context(), []contextpilot.Request{{ID: "a", Session: "s", Blocks: block}, {
		ID: "b", Session: "s",
		Blocks: block,
	}})
	if err != nil {
		t.Fatal(err)
	}
	plan := p.Plan(contextpilot.Request{
		ID: "c", Session: "s", Prior: []string{batch.Plans[1].Prompt("?")}, Behind: batch.Plans[1].End,
		Blocks: block,
	})
	if len(plan.Items) != 1 || plan.Items[0].Ref == nil || *plan.Items[0].Ref != seeing("x", 2, "b") {
		t.Errorf("%+v, want a reference to turn 2, request b", plan.Items)
	}
}

// TestBatchGoesOn: a batch goes on behind what its requests say, and its later turns behind its earlier ones; one of no session goes on
// behind nothing.
func TestBatchGoesOn(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Policy: "retrieval"})
	first := p.Plan(contextpilot.Request{ID: "1", Session: "s", Blocks: texts("x")})
	prior := []string{first.Prompt("?"), "answer"}
	batch, err := p.PlanBatch(t.Context(), []contextpilot.Request{
		{ID: "2", Session: "s", Blocks: texts("x", "y"), Prior: prior, Behind: first.End},
		{ID: "3", Session: "s", Blocks: texts("x", "z"), Prior: prior},
		{ID: "4", Session: "s", Blocks: texts("x"), Prior: prior, Behind: first.End}, // asked again
		{ID: "5", Blocks: texts("x"), Prior: prior},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		turn       int
		sent, refs string
	}{{2, "y", "x"}, {3, "x z", ""}, {2, "", "x"}, {1, "x", ""}} {
		got := batch.Plans[i]
		if got.Turn != want.turn || sent(got) != want.sent || refs(got) != want.refs || got.End.Turn() != want.turn {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	next := p.Plan(contextpilot.Request{Blocks: texts("x", "y", "z"), Prior: []string{
		prior[0], batch.Plans[0].Prompt("?"),
		batch.Plans[1].Prompt("?"),
	}, Behind: batch.Plans[1].End})
	equal(t, "references behind the second of them, whose messages did not show y", "x z", refs(next))
	equal(t, "its turn", 4, next.Turn)
}

// TestBatchPlannedAgain: a batch that never reached the engine and is planned again under its IDs finds nothing of itself,
// and adds no note that does not pay.
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

// TestBatchForetells: a later turn in a batch has the tokens that retrieval order would find, too.
func TestBatchForetells(t *testing.T) {
	p, q := newPilot(t, contextpilot.Config{Policy: "retrieval"}), newPilot(t, contextpilot.Config{Policy: "retrieval"})
	reqs := []contextpilot.Request{{ID: "1", Session: "s", Blocks: big("a", "b")}, {ID: "2", Session: "s", Blocks: big("c")}}
	first := q.Plan(reqs[0])
	reqs[1].Prior = []string{first.Prompt("?"), "answer"}
	second := reqs[1]
	second.Behind = first.End
	want := q.Plan(second)
	b, err := p.PlanBatch(t.Context(), reqs)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the second turn", want.Explain(), b.Plans[1].Explain())
	equal(t, "as retrieved", want.Prefix.Tokens, b.Plans[1].Why.Plain)
}
