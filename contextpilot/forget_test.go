package contextpilot_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// talk is a conversation of three turns: the first shows a and b, the second c, the third refers to a and c.
func talk(t *testing.T) (p *contextpilot.Pilot, plans []contextpilot.Plan, messages []string) {
	t.Helper()
	p = newPilot(t, contextpilot.Config{Tokenizer: exact{}, BlockSize: 1})
	for _, ids := range [][]string{{"a", "b"}, {"c"}, {"a", "c", "d"}} {
		plan := p.Plan(contextpilot.Request{Session: "s", Query: "Why?", Blocks: texts(ids...), Prior: messages})
		p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: plan.RequestID, Output: 2})
		plans = append(plans, plan)
		messages = append(messages, plan.Prompt("Why?"), "Because.")
	}
	return p, plans, messages
}

func kept(plans []contextpilot.Plan, messages []string, from int) (out []contextpilot.Kept) {
	for i := from; i < len(messages); i++ {
		k := contextpilot.Kept{Text: messages[i]}
		if i%2 == 0 {
			k.Request = plans[i/2].RequestID
		}
		out = append(out, k)
	}
	return out
}

// TestForgetFront: what stands at the front is expected in the cache after a cut, what moved up is not; what left is sent
// in full.
func TestForgetFront(t *testing.T) {
	p, plans, messages := talk(t)
	if n := p.Forget(contextpilot.Scope{}, "s", plans[0].RequestID, kept(plans, messages, 4)...); n != 1 {
		t.Errorf("%d blocks forgotten, want c", n)
	}
	prior := append(append([]string{}, messages[:2]...), messages[4:]...)
	plan := p.Plan(contextpilot.Request{Session: "s", Query: "Why?", Blocks: texts("a", "c", "d"), Prior: prior})
	front := exact{}.Count(messages[0]) + exact{}.Count(messages[1])
	// The index counts blocks by their texts, so it expects less than the whole front, but most of it.
	if got := plan.Prefix.Tokens; got == 0 || got > front {
		t.Errorf("%d tokens are expected, the front has %d", got, front)
	}
	refers := map[string]int{}
	for _, it := range plan.Items {
		if it.Ref != nil {
			refers[it.Ref.Label] = it.Ref.Turn
		}
	}
	if len(refers) != 2 || refers["a"] != 1 || refers["d"] != 3 {
		t.Errorf("references %v, want a of turn 1 and d of turn 3", refers)
	}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
}

// TestForgetWithoutFront: nothing of the old path is expected any more, although all blocks are still shown.
func TestForgetWithoutFront(t *testing.T) {
	p, plans, messages := talk(t)
	whole := strings.Replace(messages[4], "Please refer to [c] in the previous conversation.\n", plans[1].RenderItem(0), 1)
	rest := kept(plans, append(messages[:4:4], whole, messages[5]), 4)
	if n := p.Forget(contextpilot.Scope{}, "s", "", rest...); n != 2 {
		t.Errorf("%d blocks forgotten, want a and b", n)
	}
	plan := p.Plan(contextpilot.Request{Session: "s", Query: "Why?", Blocks: texts("c", "d"), Prior: []string{rest[0].Text, rest[1].Text}})
	if plan.Prefix.Tokens != 0 {
		t.Errorf("%d tokens are expected behind a front that has changed", plan.Prefix.Tokens)
	}
	for _, it := range plan.Items {
		if it.Ref == nil || it.Ref.Turn != 3 || it.Ref.RequestID != plans[2].RequestID {
			t.Errorf("item %+v, reference %+v: want one to turn 3, which shows both now", it, it.Ref)
		}
	}
	next := p.Plan(contextpilot.Request{
		Session: "s", Query: "Why?", Blocks: texts("e"), Prior: []string{rest[0].Text, rest[1].Text, plan.Prompt("Why?"), "Because."},
	})
	if next.Prefix.Tokens == 0 {
		t.Error("the turn behind the cut is not expected to be found by the next one")
	}
}

func TestForgetOfUnknown(t *testing.T) {
	p, plans, messages := talk(t)
	if n := p.Forget(contextpilot.Scope{}, "other", ""); n != 0 {
		t.Errorf("%d blocks of an unknown conversation", n)
	}
	if n := p.Forget(contextpilot.Scope{}, "s", "never planned", kept(plans, messages, 0)...); n != 0 {
		t.Errorf("%d blocks forgotten, but all are kept", n)
	}
	plan := p.Plan(contextpilot.Request{Session: "s", Query: "Why?", Blocks: texts("a"), Prior: messages})
	if plan.Prefix.Tokens != 0 || plan.Items[0].Ref == nil {
		t.Errorf("behind an unknown front: %d tokens expected, reference %v", plan.Prefix.Tokens, plan.Items[0].Ref)
	}
	if n := p.Forget(contextpilot.Scope{}, "s", ""); n != 4 {
		t.Errorf("%d blocks forgotten, want all 4", n)
	}
}

// What a turn's end was is not known any more once the path in front of it has been replaced.
func TestForgetAfterAnotherPath(t *testing.T) {
	ask := func(p *contextpilot.Pilot, id string, prior []string) contextpilot.Plan {
		block := contextpilot.Block{ID: id, Text: "All about " + id + "."}
		if id != "a" { // whose messages stay
			block.Tokens = 500
		}
		plan := p.Plan(contextpilot.Request{Session: "s", Query: "Why?", Blocks: []contextpilot.Block{block}, Prior: prior})
		p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: plan.RequestID, Output: 2})
		return plan
	}
	most := func(t *testing.T, p *contextpilot.Pilot, prior []string) {
		t.Helper()
		want := 0
		for _, m := range prior {
			want += exact{}.Count(m)
		}
		if got := ask(p, "z", prior).Prefix.Tokens; got > want {
			t.Errorf("%d tokens are expected behind messages of %d", got, want)
		}
		if err := p.Check(); err != nil {
			t.Error(err)
		}
	}
	t.Run("cut twice", func(t *testing.T) {
		p, plans, messages := talk(t)
		p.Forget(contextpilot.Scope{}, "s", plans[0].RequestID, kept(plans, messages, 4)...)
		prior := slices.Concat(messages[:2], messages[4:])
		fourth := ask(p, "e", prior)
		prior = append(prior, fourth.Prompt("Why?"), "Because.")
		fifth := ask(p, "f", prior)
		rest := []string{fifth.Prompt("Why?"), "Because."}
		p.Forget(contextpilot.Scope{}, "s", plans[2].RequestID, contextpilot.Kept{Request: fifth.RequestID, Text: rest[0]}, contextpilot.Kept{Text: rest[1]})
		most(t, p, slices.Concat(prior[:4], rest))
	})
	t.Run("cut without a word", func(t *testing.T) {
		p := newPilot(t, contextpilot.Config{Tokenizer: exact{}, BlockSize: 1})
		first := ask(p, "a", nil)
		front := []string{first.Prompt("Why?"), "Because."}
		ask(p, "b", front)
		ask(p, "c", front) // nothing of b is sent any more
		p.Forget(contextpilot.Scope{}, "s", first.RequestID)
		most(t, p, front)
	})
	t.Run("taken back", func(t *testing.T) {
		p, plans, messages := talk(t)
		wrong := p.Plan(contextpilot.Request{Session: "s", Blocks: texts("e"), Prior: []string{"something else"}})
		p.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: wrong.RequestID})
		p.Forget(contextpilot.Scope{}, "s", plans[1].RequestID)
		if got := ask(p, "f", messages[:4]).Prefix.Tokens; got == 0 {
			t.Error("a turn that was never sent has made the front unknown")
		}
	})
}

// Of two turns of one ID the last one is meant.
func TestForgetOfOneID(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Tokenizer: exact{}, BlockSize: 1})
	var messages []string
	for _, id := range []string{"a", "b", "c"} {
		req := contextpilot.Request{ID: "twice", Session: "s", Query: "Why?", Blocks: texts(id), Prior: messages}
		if id == "c" {
			req.ID = "once"
		}
		plan := p.Plan(req)
		p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: plan.RequestID, Output: 2})
		messages = append(messages, plan.Prompt("Why?"), "Because.")
	}
	if n := p.Forget(contextpilot.Scope{}, "s", "twice"); n != 1 {
		t.Errorf("%d blocks forgotten, want c", n)
	}
	plan := p.Plan(contextpilot.Request{Session: "s", Query: "Why?", Blocks: texts("a", "b"), Prior: messages[:4]})
	if refs(plan) != "a b" || plan.Prefix.Tokens == 0 {
		t.Errorf("references to %q, %d tokens expected", refs(plan), plan.Prefix.Tokens)
	}
}

// An answer that is reported after the cut is not counted again with the messages that were kept.
func TestForgetBeforeServed(t *testing.T) {
	expected := func(late bool) int {
		p := newPilot(t, contextpilot.Config{Tokenizer: exact{}, BlockSize: 1})
		first := p.Plan(contextpilot.Request{Session: "s", Query: "Why?", Blocks: texts("a")})
		prior := []string{first.Prompt("Why?"), "Because."}
		served := contextpilot.Event{Kind: contextpilot.Served, Request: first.RequestID, Output: 500}
		if !late {
			p.Observe(served)
		}
		p.Forget(contextpilot.Scope{}, "s", "", contextpilot.Kept{Request: first.RequestID, Text: prior[0]}, contextpilot.Kept{Text: prior[1]})
		if late {
			p.Observe(served)
		}
		second := p.Plan(contextpilot.Request{Session: "s", Query: "Why?", Blocks: texts("b"), Prior: prior})
		prior = append(prior, second.Prompt("Why?"))
		return p.Plan(contextpilot.Request{Session: "s", Query: "Why?", Blocks: texts("c"), Prior: prior}).Prefix.Tokens
	}
	equal(t, "tokens expected", expected(false), expected(true))
}
