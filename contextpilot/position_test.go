package contextpilot_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
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

// talker is a client that keeps its messages, and with each the position behind it.
type talker struct {
	p     *contextpilot.Pilot
	next  *int // for IDs
	said  []string
	plans []contextpilot.Plan
	ends  []contextpilot.Position // of said
}

func newTalker(t *testing.T) *talker {
	t.Helper()
	return &talker{next: new(int), p: newPilot(t, contextpilot.Config{Tokenizer: exact{}, BlockSize: 1})}
}

// at returns the position behind all that was said.
func (c *talker) at() contextpilot.Position {
	if len(c.ends) == 0 {
		return contextpilot.Position{}
	}
	return c.ends[len(c.ends)-1]
}

// plan asks behind what was said and keeps nothing.
func (c *talker) plan(question string, blocks ...contextpilot.Block) contextpilot.Plan {
	*c.next++
	return c.p.Plan(contextpilot.Request{ID: fmt.Sprint("r", *c.next), Session: "s", Query: question, Blocks: blocks, Prior: c.said, Behind: c.at()})
}

// ask has a turn, with an answer of one text and as many tokens as are given.
func (c *talker) ask(question string, answer int, blocks ...contextpilot.Block) contextpilot.Plan {
	plan := c.plan(question, blocks...)
	c.p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: plan.RequestID, Output: answer})
	c.said = append(slices.Clip(c.said), plan.Prompt(question), "Because.")
	c.plans = append(slices.Clip(c.plans), plan)
	c.ends = append(slices.Clip(c.ends), plan.End, plan.End.Answered(answer))
	return plan
}

// back returns the conversation as it was after so many turns.
func (c *talker) back(turns int) *talker {
	return &talker{c.p, c.next, c.said[:2*turns], c.plans[:turns], c.ends[:2*turns]}
}

// add appends a message that is no plan's prompt as planned; of says of which plan it is, nil: of none.
func (c *talker) add(text string, of *contextpilot.Plan) {
	c.ends = append(slices.Clip(c.ends), c.p.Behind(c.at(), of, text))
	c.said = append(slices.Clip(c.said), text)
}

func (c *talker) tokens() (n int) {
	for _, m := range c.said {
		n += exact{}.Count(m)
	}
	return n
}

// turnsOf returns which turn and which request each reference of a plan names.
func turnsOf(p contextpilot.Plan) map[string]string {
	out := map[string]string{}
	for _, it := range p.Items {
		if it.Ref != nil {
			out[it.Ref.Label] = fmt.Sprint(it.Ref.Turn, " ", it.Ref.RequestID)
		}
	}
	return out
}

// from names a turn as turnsOf does.
func from(p contextpilot.Plan) string { return fmt.Sprint(p.Turn, " ", p.RequestID) }

// TestLaterTurns: each turn finds the whole prompt and the answer of the one before it in the cache, and refers to what stands there.
func TestLaterTurns(t *testing.T) {
	c := newTalker(t)
	before := c.ask("Why?", 200, texts("a", "b")...)
	equal(t, "the first turn is expected nowhere", 0, before.Prefix.Tokens)
	for i := range 20 {
		plan := c.ask("Why?", 200, texts("a", "b", fmt.Sprint("c", i), fmt.Sprint("c", i-1))...)
		resident, _ := c.p.Resident(contextpilot.Scope{}, before.RequestID)
		if plan.Prefix.Tokens != resident || resident < 200*(i+1) || resident > c.back(i+1).tokens()+200*(i+1) {
			t.Errorf("turn %d: %d tokens are expected, %d were left behind", plan.Turn, plan.Prefix.Tokens, resident)
		}
		want := map[string]string{"a": from(c.plans[0]), "b": from(c.plans[0])}
		if i > 0 {
			want[fmt.Sprint("c", i-1)] = from(before)
		}
		equal(t, "references", want, turnsOf(plan))
		equal(t, "turn", i+2, plan.Turn)
		before = plan
	}
	if err := c.p.Check(); err != nil {
		t.Error(err)
	}
}

// TestAnswersOfAnyLength: where the engine's cache is not known yet, a position counts the answers that it was given.
func TestAnswersOfAnyLength(t *testing.T) {
	c := newTalker(t)
	first := c.plan("Why?", texts("a")...)
	prompt := func(at contextpilot.Position) int {
		return c.p.Match(contextpilot.Request{Scope: contextpilot.Scope{Replica: "other"}, Prior: []string{first.Prompt("Why?"), "Because."}, Behind: at}).Prompt
	}
	plain := prompt(first.End)
	for _, n := range []int{1, 70, 3000} {
		equal(t, "with an answer", plain+n, prompt(first.End.Answered(n)))
		equal(t, "with two of them", plain+2*n, prompt(first.End.Answered(n).Answered(n)))
	}
	equal(t, "with none", plain, prompt(first.End.Answered(0).Answered(-7)))
	equal(t, "the position did not change", plain, prompt(first.End))
	if none := (contextpilot.Position{}); none.Answered(9) != none {
		t.Error("an answer to nothing is a turn")
	}
	equal(t, "turn", 1, first.End.Answered(9).Turn())
}

// TestAskedAgain: a turn that is asked again, or with other words, stands where the one before it ended, whether the answer that it
// replaces had shown new blocks or not.
func TestAskedAgain(t *testing.T) {
	long := "Why, and show me all of it, from the very beginning, with each step and its reason, please, and leave out nothing at all?"
	for name, second := range map[string][]contextpilot.Block{"references only": texts("a"), "a new block": texts("a", "c")} {
		t.Run(name, func(t *testing.T) {
			c := newTalker(t)
			c.ask("Why?", 200, texts("a", "b")...)
			front := 200 + exact{}.Count(c.said[0]) + 5 // the index counts block by block
			c.ask(long, 200, second...)
			for range 2 { // and once more
				again := c.back(1)
				first := again.plan("How?", texts("a", "b")...) // which is not sent
				c.p.TakeBack(&first)
				plan := again.ask("How?", 200, texts("a", "b")...)
				if got := plan.Prefix.Tokens; got <= 200 || got > front {
					t.Errorf("%d tokens are expected behind messages of %d", got, front)
				}
				equal(t, "references", "a b", refs(plan))
				equal(t, "turn", 2, plan.Turn)
				equal(t, "expected as the first time", first.Prefix, plan.Prefix)
				if next := again.ask("So?", 200, texts("a", "e")...); next.Prefix.Tokens <= plan.Prefix.Tokens+200 {
					t.Errorf("the turn behind it expects %d tokens, it expected %d itself", next.Prefix.Tokens, plan.Prefix.Tokens)
				}
			}
			if err := c.p.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOtherHistory: where the messages do not show what the turns in front have shown, nothing is believed cached behind them, and
// what they do not show is sent in full.
func TestOtherHistory(t *testing.T) {
	for name, cut := range map[string]func(all []string) []string{
		"nothing resent":    func([]string) []string { return nil },
		"a summary":         func([]string) []string { return []string{"So far: " + strings.Repeat("the user said hello. ", 20)} },
		"the last messages": func(all []string) []string { return all[len(all)-2:] },
		"another chat": func([]string) []string {
			return []string{"<doc a>\nAll about something else.\n</doc>\nWhy?", "Because."}
		},
		"a forged block": func([]string) []string { return []string{"<doc ab>\nAll about a.\n</doc>"} },
	} {
		t.Run(name, func(t *testing.T) {
			c := newTalker(t)
			for i := range 4 {
				c.ask(fmt.Sprint("Hello, how are you? ", i), 300)
			}
			if plan := c.ask("Why?", 300, texts("a", "b")...); plan.Prefix.Tokens < 4*300 {
				t.Fatalf("%d tokens are expected behind the whole history", plan.Prefix.Tokens)
			}
			c.ask("Well?", 300)
			c.said = cut(c.said)
			plan := c.ask("And then?", 10, texts("a", "c", "d")...)
			if plan.Prefix.Tokens > 0 || plan.Prefix.Blocks > 0 {
				t.Errorf("%+v of a prompt that shares nothing", plan.Prefix)
			}
			equal(t, "sent, and referred to", "a c d; ", sent(plan)+"; "+refs(plan))
			equal(t, "turn", 7, plan.Turn)
			next := c.ask("And then?", 10, texts("a", "b", "d")...)
			want := "b; a d"
			if name == "another chat" {
				want = "a b; d" // its a is another
			}
			equal(t, "the next turn", want, sent(next)+"; "+refs(next))
			resident, _ := c.p.Resident(contextpilot.Scope{}, plan.RequestID)
			equal(t, "expected by it", resident, next.Prefix.Tokens)
			if err := c.p.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNothingResent: a turn without Prior begins a prompt, whatever it is behind: it meets others that begin so.
func TestNothingResent(t *testing.T) {
	c := newTalker(t)
	first := c.ask("Why?", 50, texts("a", "b")...)
	c.said = nil
	plan := c.ask("Why?", 50, texts("a", "b")...)
	if plan.Turn != 2 || refs(plan) != "" || plan.Prefix.Blocks != 2 || plan.Prefix.Tokens < (exact{}).Count("All about a. All about b.") {
		t.Error(plan.Explain())
	}
	next := c.plan("Why?", texts("a", "c")...)
	equal(t, "references are to the turn that is resent", map[string]string{"a": from(plan)}, turnsOf(next))
	c.said = []string{first.Prompt("Why?"), c.said[0]}
	equal(t, "and to no other", map[string]string{"a": from(plan)}, turnsOf(c.plan("Why?", texts("a")...)))
}

// TestTakeBack: turns that never reached the engine leave no trace, whatever they were planned with.
func TestTakeBack(t *testing.T) {
	c, never := newTalker(t), newTalker(t)
	for _, x := range []*talker{c, never} {
		x.ask("Why?", 10, texts("a", "b")...)
	}
	before := c.p.Stats()
	before.History = 0
	plan := c.plan("Why?", texts("c", "a", "a")...)
	other := c.p.Plan(contextpilot.Request{Session: "s", Blocks: texts("a", "c"), Prior: []string{"something else"}, Behind: c.at(), Budget: 1})
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
	set := rapid.Map(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 4, rapid.ID), func(ids []string) []contextpilot.Block { return texts(ids...) })
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
			failed = append(failed, planned.Plan(contextpilot.Request{ID: id, Session: "s", Query: id, Blocks: set.Draw(r, "blocks"), Prior: history, Behind: behind}))
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
			third := p.Plan(contextpilot.Request{ID: "2", Scope: there, Blocks: texts("a"), Prior: []string{second.Prompt("?"), "answer"}, Behind: second.End})
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

// TestEmptyText: a block of which only the ID is known is referenced like others, and only under its ID.
func TestEmptyText(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	first := p.Plan(contextpilot.Request{Blocks: []contextpilot.Block{{ID: "a"}, {ID: "b"}}})
	if len(first.Items) != 2 {
		t.Fatal(first.Explain())
	}
	prompt := first.Prompt("?")
	for _, behind := range []contextpilot.Position{first.End, p.Behind(contextpilot.Position{}, &first, prompt)} {
		got := p.Plan(contextpilot.Request{Prior: []string{prompt}, Behind: behind, Blocks: []contextpilot.Block{{ID: "c"}, {ID: "a"}}})
		if len(got.Items) != 2 || got.Items[0].Ref != nil || got.Items[1].Ref == nil || got.Items[1].Ref.Label != "a" {
			t.Error(got.Explain())
		}
	}
}

// TestShownAgain: a block that left the messages, was sent again and still stands there is one of the later turn.
func TestShownAgain(t *testing.T) {
	c := newTalker(t)
	c.ask("Why?", 10, texts("a")...)
	c.said = []string{"a summary"}
	second := c.ask("Why?", 10, texts("a")...)
	equal(t, "sent again", "a", sent(second))
	c.p.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: c.plans[0].RequestID})
	third := c.plan("Why?", texts("a")...)
	equal(t, "reference", map[string]string{"a": from(second)}, turnsOf(third))
	cut := c.back(0)
	cut.add(c.plans[0].Prompt("Why?"), &c.plans[0])
	cut.add(second.Prompt("Why?"), &second)
	cut.add(c.plans[0].Prompt("Why?"), nil)
	cut.ask("Why?", 10, texts("b")...)
	cut.said = cut.said[:3] // nothing shows b
	fourth := cut.ask("Why?", 10, texts("a", "c")...)
	equal(t, "reference behind both", map[string]string{"a": from(second)}, turnsOf(fourth))
	equal(t, "reference of the next turn", map[string]string{"a": from(second), "c": from(fourth)}, turnsOf(cut.plan("Why?", texts("a", "c")...)))
	c.said[0] = c.plans[0].Prompt("Why?") // it is back: of both the last one counts
	equal(t, "reference", map[string]string{"a": from(second)}, turnsOf(c.plan("Why?", texts("a")...)))
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

// TestPlanRequest: what was planned can be planned again from the plan alone, but for where.
func TestPlanRequest(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	behind := p.Plan(contextpilot.Request{Blocks: texts("b")}).End
	req := contextpilot.Request{Session: "s", Query: "why?", Blocks: texts("a", "b"), Prior: []string{"x"}, Behind: behind, HeadTokens: 3, Budget: 100}
	plan := p.Plan(req)
	want := req
	want.ID, want.Prior, want.Behind = plan.RequestID, nil, contextpilot.Position{}
	if diff := cmp.Diff(want, plan.Request(), cmp.Comparer(func(a, b contextpilot.Position) bool { return a == b })); diff != "" {
		t.Errorf("(-planned +kept):\n%s", diff)
	}
}

// threeTurns is a conversation of which the first turn shows a and b, the second c, the third d, and refers to a and c.
func threeTurns(t *testing.T) *talker {
	t.Helper()
	c := newTalker(t)
	c.ask("Why?", 2, texts("a", "b")...)
	c.ask("Why?", 2, texts("c")...)
	c.ask("Why?", 2, texts("a", "c", "d")...)
	equal(t, "turn 3", "d; a c", sent(c.plans[2])+"; "+refs(c.plans[2]))
	return c
}

// TestCutInTheMiddle: what stands at the front is expected in the cache after a cut, what moved up is not; what left is sent
// in full.
func TestCutInTheMiddle(t *testing.T) {
	c := threeTurns(t)
	cut := c.back(1)
	front := cut.tokens()
	resident, _ := c.p.Resident(contextpilot.Scope{}, c.plans[0].RequestID)
	cut.add(c.said[4], &c.plans[2])
	cut.add(c.said[5], nil)
	plan := cut.ask("Why?", 2, texts("a", "c", "d")...)
	if got := plan.Prefix.Tokens; got != resident || got == 0 || got > front { // the index counts block by block
		t.Errorf("%d tokens are expected, the front has %d", got, front)
	}
	equal(t, "sent", "c", sent(plan))
	equal(t, "references", map[string]string{"a": from(c.plans[0]), "d": from(c.plans[2])}, turnsOf(plan))
	equal(t, "turn", 4, plan.Turn)
	next := cut.ask("Why?", 2, texts("c", "b", "d")...)
	resident, _ = c.p.Resident(contextpilot.Scope{}, plan.RequestID)
	equal(t, "expected by the turn behind it", resident, next.Prefix.Tokens)
	equal(t, "its references", map[string]string{"b": from(c.plans[0]), "c": from(plan), "d": from(c.plans[2])}, turnsOf(next))
	equal(t, "the whole goes on as before", map[string]string{"c": from(c.plans[1])}, turnsOf(c.plan("Why?", texts("c")...)))
	if err := c.p.Check(); err != nil {
		t.Error(err)
	}
}

// TestCutOfTheFront: nothing of the old path is expected any more, although all blocks are still shown; a block that took the place of
// its reference is one of the turn that shows it now.
func TestCutOfTheFront(t *testing.T) {
	c := threeTurns(t)
	cut := c.back(0)
	whole := strings.Replace(c.said[4], "Please refer to [c] in the previous conversation.\n", c.plans[1].RenderItem(0), 1)
	cut.add(whole, &c.plans[2])
	cut.add(c.said[5], nil)
	plan := cut.ask("Why?", 2, texts("a", "c", "d")...)
	equal(t, "expected", 0, plan.Prefix.Tokens)
	equal(t, "sent", "a", sent(plan))
	equal(t, "references", map[string]string{"c": from(c.plans[2]), "d": from(c.plans[2])}, turnsOf(plan))
	equal(t, "turn", 4, plan.Turn)
	if next := cut.plan("Why?", texts("e")...); next.Prefix.Tokens == 0 {
		t.Error("the turn behind the cut is not expected to be found by the next one")
	}
	match := c.p.Match(contextpilot.Request{Query: "Why?", Prior: cut.said, Behind: cut.at()})
	if want := cut.tokens() + (exact{}).Count("Why?"); match.Prompt < want-12 || match.Prompt > want {
		t.Errorf("a prompt of %d tokens, want about %d", match.Prompt, want)
	}
}

// TestBehind: of a message only what it shows of its plan can be referred to.
func TestBehind(t *testing.T) {
	c := threeTurns(t)
	none := contextpilot.Position{}
	renamed := c.plan("Why?", contextpilot.Block{ID: "other", Text: "All about c."})
	equal(t, "the text under another ID", map[string]string{"c": from(c.plans[1])}, turnsOf(renamed))
	for name, x := range map[string]struct {
		of   *contextpilot.Plan
		text string
		refs string
	}{
		"as planned":            {&c.plans[0], c.said[0], "a b"},
		"of no plan":            {nil, c.said[0], ""},
		"of another plan":       {&c.plans[1], c.said[0], ""},
		"one block left":        {&c.plans[0], c.plans[0].RenderItem(1) + "Why?", "b"},
		"under another label":   {&c.plans[0], strings.Replace(c.said[0], "<doc a>", "<doc x>", 1), "b"},
		"with another text":     {&c.plans[0], strings.Replace(c.said[0], "All about a.", "Nothing.", 1), "b"},
		"twice":                 {&c.plans[0], c.said[0] + "\n" + c.said[0], "a b"},
		"references":            {&c.plans[2], c.said[4], "d"},
		"made whole":            {&renamed, renamed.RenderFull(0) + "Why?", "c"},
		"in another's block":    {&c.plans[0], "<doc z fence=f>\n" + c.said[0] + "\n</doc f>", ""},
		"without its last line": {&c.plans[0], "<doc a>\nAll about a.", ""},
	} {
		p := newPilot(t, contextpilot.Config{Tokenizer: exact{}, BlockSize: 1})
		at := p.Behind(none, x.of, x.text)
		plan := p.Plan(contextpilot.Request{Blocks: texts("a", "b", "c", "d"), Prior: []string{x.text}, Behind: at})
		equal(t, name, x.refs, refs(plan))
		equal(t, name+": expected", 0, plan.Prefix.Tokens)
		want := 1
		if x.of != nil {
			want = x.of.Turn + 1
		}
		equal(t, name+": turn", want, plan.Turn)
		forged := p.Plan(contextpilot.Request{Blocks: []contextpilot.Block{{ID: "n", Text: "Nothing."}}, Prior: []string{x.text}, Behind: at})
		equal(t, name+": what no turn has shown", "", refs(forged))
	}
	// Equal texts behind one position are found when they were sent behind it before.
	at := c.p.Behind(c.ends[1], nil, "A remark.")
	first := c.p.Plan(contextpilot.Request{Query: "Why?", Prior: append(c.said[:2:2], "A remark."), Behind: at})
	again := c.p.Plan(contextpilot.Request{Query: "Why?", Prior: append(c.said[:2:2], "A remark."), Behind: c.p.Behind(c.ends[1], nil, "A remark.")})
	other := c.p.Plan(contextpilot.Request{Query: "Why?", Prior: append(c.said[:2:2], "Another remark."), Behind: c.p.Behind(c.ends[1], nil, "Another remark.")})
	if first.Prefix != other.Prefix || again.Prefix.Tokens != first.Prefix.Tokens+(exact{}).Count("A remark.") {
		t.Errorf("%v, %v and %v are expected", first.Prefix, again.Prefix, other.Prefix)
	}
}

// TestEdited: a conversation of which an earlier question was edited goes on behind the turn in front of that one.
func TestEdited(t *testing.T) {
	c := threeTurns(t)
	edited := c.back(1)
	edited.add("What else?\n"+c.plans[1].RenderItem(0), &c.plans[1]) // the same block in other words
	edited.add(c.said[3], nil)
	edited.add(c.said[4], &c.plans[2])
	edited.add(c.said[5], nil)
	plan := edited.plan("Why?", texts("a", "b", "c", "d")...)
	equal(t, "references", map[string]string{"a": from(c.plans[0]), "b": from(c.plans[0]), "c": from(c.plans[1]), "d": from(c.plans[2])}, turnsOf(plan))
	resident, _ := c.p.Resident(contextpilot.Scope{}, c.plans[0].RequestID)
	equal(t, "expected", resident, plan.Prefix.Tokens)
	edited.said[2] = "What else?" // and the client knows nothing of it
	plan = edited.plan("Why?", texts("a", "b", "c", "d")...)
	equal(t, "sent after an edit", "c", sent(plan))
	equal(t, "expected after an edit", 0, plan.Prefix.Tokens)
}

// TestManyTurns: a conversation of more turns than a position has steps goes on as before, in bounded memory.
func TestManyTurns(t *testing.T) {
	c := newTalker(t)
	c.ask("Why?", 5, texts("first")...)
	for i := range 2500 {
		c.said = append(c.said, "Go on.") // a short prompt: only bytes of blocks count
		plan := c.p.Plan(contextpilot.Request{Query: "?", Prior: c.said[:3], Behind: c.at(), Blocks: texts("first")})
		if refs(plan) != "first" || plan.Items[0].Ref.Turn != 1 || plan.Turn != i+2 {
			t.Fatalf("turn %d: %s", i+2, plan.Explain())
		}
		c.p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: plan.RequestID, Output: 5})
		if i > 0 {
			resident, _ := c.p.Resident(contextpilot.Scope{}, c.plans[len(c.plans)-1].RequestID)
			if plan.Prefix.Tokens != resident || i < 2000 && resident < 5*i {
				t.Fatalf("turn %d: %d tokens are expected, %d are there", i+2, plan.Prefix.Tokens, resident)
			}
		}
		c.plans, c.ends = append(c.plans, plan), []contextpilot.Position{plan.End.Answered(5)}
		if !c.at().Bounded() {
			t.Fatalf("the position of turn %d has left its bounds", plan.Turn)
		}
	}
	c.ask("Why?", 5, texts("second")...)
	equal(t, "references at the end", "first second", refs(c.plan("Why?", texts("first", "second")...)))
}

// TestManyBlocks: of more blocks than a position knows the last ones are referred to; a path that is too long is begun anew.
func TestManyBlocks(t *testing.T) {
	c := newTalker(t)
	name := func(i, k int) string { return fmt.Sprint("b", i, ".", k) }
	const turns, blocks = 60, 200
	unknown := 0
	for i := range turns {
		var ids []string
		for k := range blocks {
			ids = append(ids, name(i, k))
		}
		plan := c.ask("Why?", 5, texts(ids...)...)
		resident := 0
		if i > 0 {
			resident, _ = c.p.Resident(contextpilot.Scope{}, c.plans[i-1].RequestID)
		}
		if plan.Prefix.Tokens != resident {
			unknown++
			equal(t, "or nothing is expected", 0, plan.Prefix.Tokens)
		}
		equal(t, "sent", blocks, len(plan.Items))
		equal(t, "bounded", true, c.at().Bounded())
	}
	if unknown != 1 { // 12,000 blocks, 8,192 of which are followed
		t.Errorf("%d turns had an unknown history", unknown)
	}
	plan := c.plan("Why?", texts(name(turns-1, 0), name(turns-15, 0), name(turns-22, 0), name(0, 0))...)
	equal(t, "the last 3,072 at least are known", "b59.0 b45.0", strings.Join(labelsOf(plan, true), " "))
	equal(t, "of more than 4,096 the first are not", "b38.0 b0.0", strings.Join(labelsOf(plan, false), " "))
	equal(t, "turn", turns+1, plan.Turn)
	if err := c.p.Check(); err != nil {
		t.Error(err)
	}
}

// TestLongQuestions: a path that is too long of questions alone is begun anew, too.
func TestLongQuestions(t *testing.T) {
	c := newTalker(t)
	question := strings.Repeat("why is that so? ", 1100)
	unknown := 0
	for i := range 40 {
		plan := c.ask(fmt.Sprint(i, question), 5, texts("a", "b")...)
		if i > 0 && plan.Prefix.Tokens == 0 {
			unknown++
		}
		if want := "a b"; i > 0 && refs(plan) != want || !c.at().Bounded() {
			t.Fatalf("turn %d: references %q, bounded: %v", i+1, refs(plan), c.at().Bounded())
		}
	}
	equal(t, "turns of an unknown history", 1, unknown)
}

// labelsOf returns the labels of a plan's references, or of its other items, in retrieval order.
func labelsOf(p contextpilot.Plan, ref bool) []string {
	at := make([]string, p.Len())
	for _, it := range p.Items {
		if (it.Ref != nil) == ref {
			at[it.Index] = it.Label
		}
	}
	var out []string
	for _, l := range at {
		if l != "" {
			out = append(out, l)
		}
	}
	return out
}

// TestPositionsAreSmall: a position of a conversation without end takes no more than its bounds say.
func TestPositionsAreSmall(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Tokenizer: exact{}, MaxRequests: 10})
	at, bytes := held(func() contextpilot.Position {
		var at contextpilot.Position
		prior := []string{""}
		for i := range 3000 {
			var list []contextpilot.Block
			for k := range 5 {
				list = append(list, contextpilot.Block{ID: fmt.Sprint("b", i, ".", k), Text: strings.Repeat("x", 2000) + fmt.Sprint(i, k)})
			}
			prior = append(prior[:0:0], prior[max(0, len(prior)-2):]...)
			plan := p.Plan(contextpilot.Request{Prior: prior, Behind: at, Blocks: list})
			prior = append(prior, plan.Context())
			at = p.Behind(plan.End.Answered(10), nil, "And so on.")
			prior = append(prior, "And so on.")
		}
		return at
	})
	if bytes > 2<<20 {
		t.Errorf("%d bytes", bytes)
	}
	equal(t, "turn", 3000, at.Turn())
	runtime.KeepAlive(p)
}

// TestSharedPositions: a position can be used from any goroutine. Run it with -race.
func TestSharedPositions(t *testing.T) {
	c := threeTurns(t)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			own, next := c.back(3), 1000*(g+1)
			own.next = &next
			own.said, own.ends = append([]string{}, c.said...), append([]contextpilot.Position{}, c.ends...)
			for i := range 30 {
				plan := own.plan("Why?", texts("a", "b", "c", "d", fmt.Sprint("own", g, ".", i))...)
				if refs(plan) != "a b c d" || plan.Turn != 4+i {
					t.Error(plan.Explain())
				}
				own.said, own.ends = append(own.said, plan.Prompt("Why?")), append(own.ends, plan.End.Answered(i))
				own.add("Go on.", &c.plans[i%3])
				if c.at() != c.ends[5] || c.at().Turn() != 3 {
					t.Error("the shared position has changed")
				}
			}
		})
	}
	wg.Wait()
}

// After a restart the texts are all there is: blocks that users' messages show are referred to, under each rule of what is the same.
func TestRestore(t *testing.T) {
	for _, dedup := range []contextpilot.Dedup{contextpilot.DedupContent, contextpilot.DedupID, contextpilot.DedupOff} {
		before := newPilot(t, contextpilot.Config{Dedup: dedup})
		one := before.Plan(contextpilot.Request{Blocks: blocks("a", "b")})
		prior := []string{one.Prompt("?"), "answer"}

		p := newPilot(t, contextpilot.Config{Dedup: dedup})
		at := p.Behind(p.Restore(contextpilot.Position{}, prior[0]), nil, prior[1])
		two := p.Plan(contextpilot.Request{Blocks: blocks("b", "c"), Prior: prior, Behind: at})
		want := "b"
		if dedup == contextpilot.DedupOff {
			want = ""
		}
		equal(t, "referred to", want, refs(two))
		equal(t, "turn", 2, two.Turn)
		if want != "" {
			equal(t, "shown in turn", 1, two.Items[1].Ref.Turn)
		}
		edited := []string{"<doc b>\nanother text\n</doc>", "answer"}
		three := p.Plan(contextpilot.Request{Blocks: blocks("b"), Prior: edited, Behind: p.Restore(contextpilot.Position{}, edited[0])})
		equal(t, "another text", "b", sent(three))
	}
}

// A preview has the references that a plan would have, in the order that was asked for, and leaves no trace.
func TestPreview(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Policy: "sorted"})
	one := p.Plan(contextpilot.Request{Blocks: blocks("b")})
	before := p.Stats()
	plan := p.Preview(contextpilot.Request{Blocks: blocks("c", "b", "a"), Prior: []string{one.Prompt("")}, Behind: one.End})
	equal(t, "sent", "c a", sent(plan))
	equal(t, "referred to", "b", refs(plan))
	if plan.Fault != nil || plan.Hint != "" || plan.Items[2].Ref.Note == "" {
		t.Errorf("%+v", plan)
	}
	equal(t, "stats", before, p.Stats())
}
