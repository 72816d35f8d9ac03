package contextpilot_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// TestBlocksAreBounded: the index is bounded by the blocks of its prompts, too, and the last request stays.
func TestBlocksAreBounded(t *testing.T) {
	p := newPilot(t, contextpilot.Config{MaxRequests: 10})
	for i := range 10 {
		var list []contextpilot.Block
		for k := range 1000 {
			list = append(list, contextpilot.Block{ID: fmt.Sprint(i, "/", k), Text: fmt.Sprint("text ", i, " ", k)})
		}
		p.Plan(contextpilot.Request{ID: fmt.Sprint(i), Blocks: list})
	}
	if st := p.Stats(); st.LiveRequests != 1 || st.Nodes > 1001 {
		t.Errorf("%d live requests of %d nodes", st.LiveRequests, st.Nodes)
	}
	if n := p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: "9"}); n != 1 {
		t.Error("the last request is not live")
	}
}

// TestHistoryIsBounded: what the policy remembers of earlier requests is bounded in all scopes together, and is less when
// scopes go.
func TestHistoryIsBounded(t *testing.T) {
	const limit = 300
	p := newPilot(t, contextpilot.Config{MaxHistory: limit})
	for i := range 400 {
		p.Plan(contextpilot.Request{
			ID: fmt.Sprint(i), Scope: contextpilot.Scope{Tenant: fmt.Sprint(i % 3), Replica: fmt.Sprint(i % 4)},
			Blocks: texts(fmt.Sprint("a", i), fmt.Sprint("b", i), "c"),
		})
		if n := p.Stats().History; n > limit || i > limit && n < limit/2 {
			t.Fatalf("%d blocks are remembered after %d requests", n, i+1)
		}
	}
	for i := range 3 {
		p.DropTenant(fmt.Sprint(i))
	}
	if n := p.Stats().History; n != 0 {
		t.Errorf("%d blocks are remembered of scopes that are gone", n)
	}
}

// askedFor counts how often it is asked.
type askedFor struct{ calls int }

func (c *askedFor) Count(text string) int {
	c.calls++
	return len(text) / 4
}

// TestQuestionIsCountedOnce: a tokenizer, which may be a server, is asked for each text and not for its pieces.
func TestQuestionIsCountedOnce(t *testing.T) {
	c := new(askedFor)
	p := newPilot(t, contextpilot.Config{Tokenizer: c})
	question := strings.Repeat("what is this? ", 5000)
	first := p.Plan(contextpilot.Request{Query: question, Blocks: texts("a", "b")})
	if c.calls > 4 { // blocks, question, and the question behind a note
		t.Errorf("counted %d times", c.calls)
	}
	p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: first.RequestID})
	again := p.Plan(contextpilot.Request{Query: question, Blocks: texts("a", "b")})
	if want := 256 * 64 / 4; again.Prefix.Tokens < want || again.Prefix.Tokens > len(question)/4+100 {
		t.Errorf("%d tokens are expected in the cache, want at least the question's first %d", again.Prefix.Tokens, want)
	}
}

// TestManyRepeats: of many blocks those that are the same are found as they are of few, and labels with two texts, too.
func TestManyRepeats(t *testing.T) {
	var list []contextpilot.Block
	for i := range 300 {
		list = append(list, contextpilot.Block{ID: fmt.Sprint(i % 100), Text: fmt.Sprint("text ", i%100)})
	}
	p := newPilot(t, contextpilot.Config{})
	plan := p.Plan(contextpilot.Request{Session: "s", Blocks: list})
	if len(plan.Items) != 100 || len(plan.LeftOut) != 200 {
		t.Fatalf("%d items, %d left out", len(plan.Items), len(plan.LeftOut))
	}
	for _, l := range plan.LeftOut {
		if l.Reason != contextpilot.Duplicate || l.Same != l.Index%100 {
			t.Fatalf("%+v", l)
		}
	}
	prior := []string{plan.Prompt("?"), "answer"}
	next := append(list[:100:100], contextpilot.Block{ID: "7", Text: "another text"})
	again := p.Plan(contextpilot.Request{Session: "s", Blocks: next, Prior: prior, Behind: plan.End})
	full := 0
	for _, it := range again.Items {
		if it.Ref == nil {
			full++
		}
	}
	if full != 2 || len(again.Items) != 101 { // both texts under the label 7
		t.Errorf("%d of %d items are sent in full", full, len(again.Items))
	}
}
