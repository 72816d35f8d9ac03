package contextpilot_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	return c.p.Plan(contextpilot.Request{
		ID: fmt.Sprint("r", *c.next), Session: "s", Query: question, Blocks: blocks, Prior: c.said,
		Behind: c.at(),
	})
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
		return c.p.Match(contextpilot.Request{
			Scope: contextpilot.Scope{Replica: "other"}, Prior: []string{first.Prompt("Why?"), "Because."},
			Behind: at,
		}).Prompt
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
			want := "c d a; " // behind a history the best block is the last
			if name == "nothing resent" {
				want = "a c d; "
			}
			equal(t, "sent, and referred to", want, sent(plan)+"; "+refs(plan))
			equal(t, "turn", 7, plan.Turn)
			next := c.ask("And then?", 10, texts("a", "b", "d")...)
			want = "b; a d"
			if name == "another chat" {
				want = "b a; d" // its a is another
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
	equal(t, "reference of the next turn", map[string]string{"a": from(second), "c": from(fourth)}, turnsOf(cut.plan("Why?", texts("a",
		"c")...)))
	c.said[0] = c.plans[0].Prompt("Why?") // it is back: of both the last one counts
	equal(t, "reference", map[string]string{"a": from(second)}, turnsOf(c.plan("Why?", texts("a")...)))
}

// TestPlanRequest: what was planned can be planned again from the plan alone, but for where.
func TestPlanRequest(t *testing.T) {
	p := newPilot(t, contextpilot.Config{})
	behind := p.Plan(contextpilot.Request{Blocks: texts("b")}).End
	req := contextpilot.Request{
		Session: "s", Query: "why?", Blocks: texts("a", "b"), Prior: []string{"x"}, Behind: behind, HeadTokens: 3,
		Budget: 100,
	}
	plan := p.Plan(req)
	want := req
	want.ID, want.Prior, want.Behind = plan.RequestID, nil, contextpilot.Position{}
	if diff := cmp.Diff(want, plan.Request(), cmp.Comparer(func(a, b contextpilot.Position) bool { return a == b })); diff != "" {
		t.Errorf("(-planned +kept):\n%s", diff)
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
