package contextpilot_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// TestTakeBack: turns that never reached the engine leave no trace, whatever they were planned with.
func TestTakeBack(t *testing.T) {
	c, never := newTalker(t), newTalker(t)
	for _, x := range []*talker{c, never} {
		x.ask("Why?", 10, texts("a", "b")...)
	}
	before := c.p.Stats()
	before.History = 0
	plan := c.plan("Why?", texts("c", "a", "a")...)
	other := c.p.Plan(contextpilot.Request{
		Session: "s", Blocks: texts("a", "c"), Prior: []string{"something else"}, Behind: c.at(),
		Budget: 1,
	})
	equal(t, "taken back", []bool{true, true}, []bool{c.p.TakeBack(&plan), c.p.TakeBack(&other)})
	after := c.p.Stats()
	after.History = 0 // of the policy
	equal(t, "stats", before, after)
	got, want := c.ask("How?", 10, texts("a", "c")...), never.ask("How?", 10, texts("a", "c")...)
	equal(t, "the next turn", strings.ReplaceAll(want.Explain(), want.RequestID, "id"), strings.ReplaceAll(got.Explain(), got.RequestID, "id"))

	stats := c.p.Stats()
	equal(t, "of what was served", false, c.p.TakeBack(&got))
	equal(t, "stats of what was served", stats, c.p.Stats())
	far := got
	far.Scope.Replica = "gone"
	equal(t, "where nothing is known", true, c.p.TakeBack(&far))
	equal(t, "plans", stats.Plans-1, c.p.Stats().Plans)
	if _, live := c.p.Resident(contextpilot.Scope{}, got.RequestID); !live {
		t.Error("the served turn has left the index")
	}
}

// TestTakeBackAny: turns that overlap, with any history, and that are all taken back in any order, leave no trace.
func TestTakeBackAny(t *testing.T) {
	set := rapid.Map(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 4, rapid.ID),
		func(ids []string) []contextpilot.Block { return texts(ids...) })
	rapid.Check(t, func(r *rapid.T) {
		cfg := contextpilot.Config{Tokenizer: exact{}, BlockSize: 1}
		planned, never := newPilot(t, cfg), newPilot(t, cfg)
		var prior []string
		ends := make([]contextpilot.Position, 1)
		ask := func(id string) {
			blocks := set.Draw(r, "blocks")
			var plans [2]contextpilot.Plan
			for i, p := range []*contextpilot.Pilot{planned, never} {
				plans[i] = p.Plan(contextpilot.Request{ID: id, Session: "s", Query: id, Blocks: blocks, Prior: prior, Behind: ends[len(ends)-1]})
				p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: id, Output: 20})
			}
			if diff := cmp.Diff(plans[1].Explain(), plans[0].Explain()); diff != "" {
				r.Fatalf("%s (-never planned +taken back):\n%s", id, diff)
			}
			prior, ends = append(prior, plans[0].Prompt(id), "answer"), append(ends, plans[0].End.Answered(20))
		}
		for i := range rapid.IntRange(1, 4).Draw(r, "turns") {
			ask(fmt.Sprint("before ", i))
		}
		var failed []contextpilot.Plan
		for i := range rapid.IntRange(1, 4).Draw(r, "overlapping") {
			id := fmt.Sprint("failed ", i)
			history := rapid.SampledFrom([][]string{prior, nil, {"elsewhere"}}).Draw(r, "history")
			behind := rapid.SampledFrom(ends).Draw(r, "behind")
			failed = append(failed, planned.Plan(contextpilot.Request{
				ID: id, Session: "s", Query: id, Blocks: set.Draw(r, "blocks"),
				Prior: history, Behind: behind,
			}))
		}
		for _, i := range rapid.Permutation(identityOf(len(failed))).Draw(r, "taken back") {
			if !planned.TakeBack(&failed[i]) {
				r.Fatalf("%s was not taken back", failed[i].RequestID)
			}
		}
		ask("after")
		ask("at the end")
		a, b := planned.Stats(), never.Stats()
		a.History, b.History = 0, 0
		if diff := cmp.Diff(b, a); diff != "" {
			r.Fatalf("stats (-never planned +taken back):\n%s", diff)
		}
	})
}

func identityOf(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

// TestOverlappingTurns: turns behind one position know nothing of each other, also while both are on their way.
func TestOverlappingTurns(t *testing.T) {
	c := newTalker(t)
	c.ask("Why?", 10, texts("a")...)
	left, right := c.back(1), c.back(1)
	l, r := left.plan("How?", texts("b", "a")...), right.plan("When?", texts("c", "a")...)
	equal(t, "turns", []int{2, 2}, []int{l.Turn, r.Turn})
	equal(t, "expected by both", l.Prefix, r.Prefix)
	left.said, left.ends = append(slices.Clip(left.said), l.Prompt("How?")), append(slices.Clip(left.ends), l.End)
	right.said, right.ends = append(slices.Clip(right.said), r.Prompt("When?")), append(slices.Clip(right.ends), r.End)
	equal(t, "behind the one", map[string]string{"a": from(c.plans[0]), "b": from(l)}, turnsOf(left.plan("So?", texts("a", "b", "c")...)))
	equal(t, "behind the other", map[string]string{"a": from(c.plans[0]), "c": from(r)}, turnsOf(right.plan("So?", texts("a", "b", "c")...)))
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
			first := p.Plan(contextpilot.Request{ID: "1", Scope: here, Blocks: texts("a", "b")})
			lost(p)
			p.TakeBack(&first)
			again := first.Request()
			again.Scope = there
			second := p.Plan(again)
			if st := p.Stats(); st.LiveRequests != 1 || st.Plans != 1 || st.BlocksSent != 2 || second.Turn != 1 {
				t.Errorf("turn %d, %+v", second.Turn, st)
			}
			p.Observe(contextpilot.Event{Kind: contextpilot.Gone, Scope: here, Request: "1"}) // late news of the first attempt
			third := p.Plan(contextpilot.Request{
				ID: "2", Scope: there, Blocks: texts("a"), Prior: []string{second.Prompt("?"), "answer"},
				Behind: second.End,
			})
			equal(t, "references of turn 2", map[string]string{"a": "1 1"}, turnsOf(third))
			equal(t, "turn", 2, third.Turn)
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
