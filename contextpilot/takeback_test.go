package contextpilot_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
)

func texts(ids ...string) []contextpilot.Block {
	var out []contextpilot.Block
	for _, id := range ids {
		out = append(out, contextpilot.Block{ID: id, Text: "All about " + id + "."})
	}
	return out
}

// TestTakeBack: a turn that never reached the engine leaves no trace in its conversation, whatever it was planned
// with: planned once more, the next turn is what it would have been.
func TestTakeBack(t *testing.T) {
	for _, wrong := range []string{"nothing resent", "history of another chat"} {
		t.Run(wrong, func(t *testing.T) {
			p, prior := afterOneTurn(t)
			failed := contextpilot.Request{ID: "2", Session: "s", Blocks: texts("a", "c")}
			if wrong != "nothing resent" {
				failed.Prior = []string{"something else"}
			}
			p.Plan(failed)
			p.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: "2"})

			got := p.Plan(contextpilot.Request{ID: "2", Session: "s", Blocks: texts("a", "c"), Prior: prior})
			q, _ := afterOneTurn(t)
			want := q.Plan(contextpilot.Request{ID: "2", Session: "s", Blocks: texts("a", "c"), Prior: prior})
			if diff := cmp.Diff(want.Explain(), got.Explain()); diff != "" {
				t.Errorf("(-never planned +taken back):\n%s", diff)
			}
			if len(got.Items) != 2 || got.Items[1].Ref == nil || got.Turn != 2 {
				t.Errorf("turn %d, items %+v: want a reference to a", got.Turn, got.Items)
			}
		})
	}
}

// afterOneTurn returns a pilot that planned and served request 1 of conversation s, with blocks a and b, and its messages.
func afterOneTurn(t *testing.T) (p *contextpilot.Pilot, prior []string) {
	t.Helper()
	p = newPilot(t, contextpilot.Config{})
	first := p.Plan(contextpilot.Request{ID: "1", Session: "s", Blocks: texts("a", "b")})
	p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: "1", Output: 10})
	return p, []string{first.Prompt("?"), "answer"}
}

// TestTakeBackOverlapping: of turns that were planned while others were on their way no trace is left either, in whatever
// order they are taken back.
func TestTakeBackOverlapping(t *testing.T) {
	for _, order := range [][]string{{"2", "3", "4"}, {"4", "3", "2"}, {"3", "2", "4"}, {"2", "4", "3"}, {"4", "2", "3"}, {"3", "4", "2"}} {
		p, prior := afterOneTurn(t)
		p.Plan(contextpilot.Request{ID: "2", Session: "s", Blocks: texts("a", "c"), Prior: prior})
		p.Plan(contextpilot.Request{ID: "3", Session: "s", Blocks: texts("a", "c", "d")})
		p.Plan(contextpilot.Request{ID: "4", Session: "s", Blocks: texts("d"), Prior: prior})
		for _, id := range order {
			p.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: id})
		}
		got := p.Plan(contextpilot.Request{ID: "5", Session: "s", Blocks: texts("a", "c"), Prior: prior})

		q, _ := afterOneTurn(t)
		want := q.Plan(contextpilot.Request{ID: "5", Session: "s", Blocks: texts("a", "c"), Prior: prior})
		if diff := cmp.Diff(want.Explain(), got.Explain()); diff != "" {
			t.Errorf("%v (-never planned +taken back):\n%s", order, diff)
		}
	}
}

// TestTakeBackShownAgain: where a turn has shown a block again and is taken back, the turn that showed it first counts, also for
// turns that found neither in their messages.
func TestTakeBackShownAgain(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	first := p.Plan(contextpilot.Request{ID: "1", Session: "s", Blocks: texts("a")})
	p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: "1", Output: 10})
	prior := []string{first.Prompt("?"), "answer"}
	p.Plan(contextpilot.Request{ID: "2", Session: "s", Blocks: texts("a")}) // sends a again
	p.Plan(contextpilot.Request{ID: "3", Session: "s", Blocks: texts("b"), Prior: prior})
	p.Plan(contextpilot.Request{ID: "4", Session: "s", Blocks: texts("c")})
	for _, id := range []string{"2", "3", "4"} {
		p.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: id})
	}
	got := p.Plan(contextpilot.Request{ID: "5", Session: "s", Blocks: texts("a"), Prior: prior})
	equal(t, "reference", seeing("a", 1, "1"), *got.Items[0].Ref)
}

// TestTakeBackAny: up to four turns that overlap, with any history, and that are all taken back in any order, leave no trace.
func TestTakeBackAny(t *testing.T) {
	set := rapid.Map(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 4, rapid.ID), func(ids []string) []contextpilot.Block { return texts(ids...) })
	rapid.Check(t, func(r *rapid.T) {
		cfg := contextpilot.Config{Tokenizer: exact{}, BlockSize: 1}
		planned, never := newPilot(t, cfg), newPilot(t, cfg)
		var prior []string
		ask := func(id string) {
			blocks := set.Draw(r, "blocks")
			var plans [2]contextpilot.Plan
			for i, p := range []*contextpilot.Pilot{planned, never} {
				plans[i] = p.Plan(contextpilot.Request{ID: id, Session: "s", Query: id, Blocks: blocks, Prior: prior})
				p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: id, Output: 20})
			}
			if diff := cmp.Diff(plans[1].Explain(), plans[0].Explain()); diff != "" {
				r.Fatalf("%s (-never planned +taken back):\n%s", id, diff)
			}
			prior = append(prior, plans[0].Prompt(id), "answer")
		}
		for i := range rapid.IntRange(1, 4).Draw(r, "turns") {
			ask(fmt.Sprint("before ", i))
		}
		var ids []string
		for i := range rapid.IntRange(1, 4).Draw(r, "overlapping") {
			ids = append(ids, fmt.Sprint("failed ", i))
			history := rapid.SampledFrom([][]string{prior, nil, {"elsewhere"}}).Draw(r, "history")
			planned.Plan(contextpilot.Request{ID: ids[i], Session: "s", Query: ids[i], Blocks: set.Draw(r, "blocks"), Prior: history})
		}
		for _, id := range rapid.Permutation(ids).Draw(r, "taken back") {
			planned.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: id})
		}
		ask("after")
		ask("at the end")
	})
}

// TestRetryElsewhere: a turn that is planned again for another replica is one turn, and the first replica's index holds
// nothing of it.
func TestRetryElsewhere(t *testing.T) {
	here, there := contextpilot.Scope{Replica: "here"}, contextpilot.Scope{Replica: "there"}
	for name, lost := range map[string]func(*contextpilot.Pilot){
		"failed":  func(*contextpilot.Pilot) {},
		"gone":    func(p *contextpilot.Pilot) { p.DropReplica("here") },
		"cleared": func(p *contextpilot.Pilot) { p.Observe(contextpilot.Event{Kind: contextpilot.Cleared, Scope: here}) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPilot(t, contextpilot.Config{})
			p.Plan(contextpilot.Request{ID: "1", Session: "s", Scope: here, Blocks: texts("a", "b")})
			lost(p)
			second := p.Plan(contextpilot.Request{ID: "1", Session: "s", Scope: there, Blocks: texts("a", "b")})
			if st := p.Stats(); st.LiveRequests != 1 || second.Turn != 1 {
				t.Errorf("turn %d, %d live requests", second.Turn, st.LiveRequests)
			}
			p.Observe(contextpilot.Event{Kind: contextpilot.Gone, Scope: here, Request: "1"}) // late news of the first attempt
			third := p.Plan(contextpilot.Request{ID: "2", Session: "s", Scope: there, Blocks: texts("a"), Prior: []string{second.Prompt("?"), "answer"}})
			if third.Turn != 2 || third.Items[0].Ref == nil || third.Items[0].Ref.RequestID != "1" {
				t.Error(third.Explain())
			}
		})
	}
}

// TestAnsweredAgain: what is planned again under the ID of an answered request finds its own prompt in the cache.
func TestAnsweredAgain(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	var list []contextpilot.Block
	for _, b := range texts("a", "b", "c", "d", "e") {
		b.Tokens = 100
		list = append(list, b)
	}
	p.Plan(contextpilot.Request{ID: "1", Blocks: list})
	p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: "1", Output: 10})
	if again := p.Plan(contextpilot.Request{ID: "1", Blocks: list}); again.Prefix.Tokens < 480 || again.Prefix.Blocks != 5 {
		t.Errorf("expected %+v", again.Prefix)
	}
	p.Observe(contextpilot.Event{Kind: contextpilot.Shrunk, Request: "1", Tokens: 200})
	if again := p.Plan(contextpilot.Request{ID: "1", Blocks: list}); again.Prefix.Tokens > 200 {
		t.Errorf("of 200 tokens that are left it expects %+v", again.Prefix)
	}
}

// TestClaimOfRetry: a retrieval that is done again under its ID has one plan, and claiming it does not take it back.
func TestClaimOfRetry(t *testing.T) {
	for _, session := range []string{"s", ""} {
		p := newPilot(t, contextpilot.Config{})
		var text string
		for range 2 {
			plan := p.Plan(contextpilot.Request{ID: "1", Session: session, Blocks: texts("a", "b")})
			text = plan.Context()
			p.Hold(plan)
		}
		if plan, _, _, ok := p.Claim(session, text); !ok || plan.RequestID != "1" {
			t.Errorf("session %q: claimed %q", session, plan.RequestID)
		}
		if n := p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: "1"}); n != 1 {
			t.Errorf("session %q: the claimed request is not live", session)
		}
		if plan, _, _, ok := p.Claim(session, text); ok {
			t.Errorf("session %q: %q is claimed twice", session, plan.RequestID)
		}
	}
}

// TestClaimOfMost: a prompt is that of the plan with all of its blocks, not of an older one with some of them.
func TestClaimOfMost(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	some, all := p.Plan(contextpilot.Request{ID: "some", Blocks: texts("a")}), p.Plan(contextpilot.Request{ID: "all", Blocks: texts("a", "b")})
	p.Hold(some)
	p.Hold(all)
	for _, want := range []contextpilot.Plan{all, some} {
		if got, _, _, ok := p.Claim("", want.Context()); !ok || got.RequestID != want.RequestID {
			t.Errorf("claimed %q, want %q", got.RequestID, want.RequestID)
		}
	}
}

// TestEmptyText: a block of which only the ID is known is referenced like others, and only under its ID.
func TestEmptyText(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	first := p.Plan(contextpilot.Request{Session: "s", Blocks: []contextpilot.Block{{ID: "a"}, {ID: "b"}}})
	if len(first.Items) != 2 {
		t.Fatal(first.Explain())
	}
	got := p.Plan(contextpilot.Request{Session: "s", Prior: []string{first.Prompt("?")}, Blocks: []contextpilot.Block{{ID: "c"}, {ID: "a"}}})
	if len(got.Items) != 2 || got.Items[0].Ref != nil || got.Items[1].Ref == nil || got.Items[1].Ref.Label != "a" {
		t.Error(got.Explain())
	}
}

// TestShownAgain: a block that left the messages, was sent again and still stands there stays known when the turn that
// showed it first is forgotten or taken back.
func TestShownAgain(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	p.Plan(contextpilot.Request{ID: "1", Session: "s", Blocks: texts("a")})
	second := p.Plan(contextpilot.Request{ID: "2", Session: "s", Blocks: texts("a"), Prior: []string{"a summary"}})
	p.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: "1"}) // never served: what it showed is undone
	third := p.Plan(contextpilot.Request{ID: "3", Session: "s", Blocks: texts("a"), Prior: []string{"a summary", second.Prompt("?")}})
	if len(third.Items) != 1 || third.Items[0].Ref == nil || third.Items[0].Ref.RequestID != "2" {
		t.Error(third.Explain())
	}
}

// TestServedTwice: an answer that the engine and a wrapper both report counts once.
func TestServedTwice(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	p.Plan(contextpilot.Request{ID: "1", Blocks: texts("a")})
	served := contextpilot.Event{Kind: contextpilot.Served, Request: "1", Tokens: 64, Output: 5}
	if n := p.Observe(served, served); n != 2 {
		t.Errorf("applied %d", n)
	}
	if st := p.Stats(); st.PrefixReported != 64 || st.Events != 2 {
		t.Errorf("%d tokens reported in %d events", st.PrefixReported, st.Events)
	}
}

// TestClaimOfConversation: a retrieval that was planned and never sent does not shadow the one that is.
func TestClaimOfConversation(t *testing.T) {
	for _, session := range []string{"s", ""} {
		p := newPilot(t, contextpilot.Config{})
		var text string
		for _, id := range []string{"abandoned", "sent"} {
			plan := p.Plan(contextpilot.Request{ID: id, Blocks: texts("a", "b")})
			plan.Session = session
			text = plan.Context()
			p.Hold(plan)
		}
		want, held, live := "sent", int64(0), int64(1)
		if session == "" { // two callers with the same blocks: each gets one
			want, held, live = "abandoned", 1, 2
		}
		got, start, end, ok := p.Claim(session, "Documents:\n"+text+"Question")
		if !ok || got.RequestID != want || start != len("Documents:\n") || end != len("Documents:\n"+text)-1 {
			t.Errorf("session %q: claimed %q at %d to %d", session, got.RequestID, start, end)
		}
		if st := p.Stats(); st.Held != held || st.LiveRequests != live || st.Plans != live || st.Plans+st.Unclaimed != 2 {
			t.Errorf("session %q: %d held, %d live, %d plans, %d unclaimed", session, st.Held, st.LiveRequests, st.Plans, st.Unclaimed)
		}
	}
}

// TestPlanRequest: what was planned can be planned again from the plan alone.
func TestPlanRequest(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	req := contextpilot.Request{Session: "s", Query: "why?", Blocks: texts("a", "b"), Prior: []string{"x"}, HeadTokens: 3, Budget: 100}
	plan := p.Plan(req)
	want := req
	want.ID, want.Prior = plan.RequestID, nil
	if diff := cmp.Diff(want, plan.Request()); diff != "" {
		t.Errorf("(-planned +kept):\n%s", diff)
	}
}
