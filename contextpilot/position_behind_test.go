package contextpilot_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
)

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
	again := c.p.Plan(contextpilot.Request{Query: "Why?", Prior: append(c.said[:2:2], "A remark."), Behind: c.p.Behind(c.ends[1], nil,
		"A remark.")})
	other := c.p.Plan(contextpilot.Request{Query: "Why?", Prior: append(c.said[:2:2], "Another remark."), Behind: c.p.Behind(c.ends[1], nil,
		"Another remark.")})
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
	equal(t, "references", map[string]string{"a": from(c.plans[0]), "b": from(c.plans[0]), "c": from(c.plans[1]), "d": from(c.plans[2])},
		turnsOf(plan))
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
