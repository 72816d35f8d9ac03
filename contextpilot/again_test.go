package contextpilot_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// TestAskedAgain: a turn that is asked again, or with other words, stands where the one before it ended, whether the answer that it
// replaces had shown new blocks or not.
func TestAskedAgain(t *testing.T) {
	long := "Why, and tell me all of it, from the very beginning, with each step and its reason, please, and leave out nothing at all?"
	for name, second := range map[string][]contextpilot.Block{"references only": texts("a"), "a new block": texts("a", "c")} {
		t.Run(name, func(t *testing.T) {
			p := newPilot(t, contextpilot.Config{Tokenizer: exact{}, BlockSize: 1})
			ask := func(query string, prior []string, blocks ...contextpilot.Block) contextpilot.Plan {
				plan := p.Plan(contextpilot.Request{Session: "s", Query: query, Blocks: blocks, Prior: prior})
				p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: plan.RequestID, Output: 200})
				return plan
			}
			first := ask("Why?", nil, texts("a", "b")...)
			prior := []string{first.Prompt("Why?"), "Because."}
			front := 200 + exact{}.Count(prior[0]) + 5 // the index counts block by block
			ask(long, prior, second...)
			for range 2 { // and once more
				again := ask("How?", prior, texts("a", "b")...)
				if got := again.Prefix.Tokens; got <= 200 || got > front {
					t.Errorf("%d tokens are expected behind messages of %d", got, front)
				}
				if len(again.Items) != 2 || again.Items[0].Ref == nil || again.Items[1].Ref == nil {
					t.Error(again.Explain())
				}
				next := ask("So?", append(prior[:2:2], again.Prompt("How?"), "Thus."), texts("a", "e")...)
				if next.Prefix.Tokens <= again.Prefix.Tokens+200 {
					t.Errorf("the turn behind it expects %d tokens, it expected %d itself", next.Prefix.Tokens, again.Prefix.Tokens)
				}
			}
			if err := p.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOtherHistory: a summary, or the last messages alone, are no history that is asked again, however short they are and whatever
// the turns before had shown: nothing is believed cached behind them.
func TestOtherHistory(t *testing.T) {
	for name, cut := range map[string]func(all []string) []string{
		"a summary":         func([]string) []string { return []string{"So far: " + strings.Repeat("the user said hello. ", 20)} },
		"the last messages": func(all []string) []string { return all[len(all)-2:] },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPilot(t, contextpilot.Config{Tokenizer: exact{}, BlockSize: 1})
			var prior []string
			ask := func(query string, blocks ...contextpilot.Block) contextpilot.Plan {
				plan := p.Plan(contextpilot.Request{Session: "s", Query: query, Blocks: blocks, Prior: prior})
				p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: plan.RequestID, Output: 300})
				prior = append(prior, plan.Prompt(query), strings.Repeat("answer ", 45))
				return plan
			}
			for i := range 4 {
				ask(fmt.Sprint("Hello, how are you? ", i))
			}
			if plan := ask("Why?", texts("a", "b")...); plan.Prefix.Tokens < 4*300 {
				t.Fatalf("%d tokens are expected behind the whole history", plan.Prefix.Tokens)
			}
			ask("Well?")
			prior = cut(prior)
			if plan := ask("And then?", texts("c", "d")...); plan.Prefix.Tokens > 0 {
				t.Errorf("%d tokens of a prompt that shares nothing", plan.Prefix.Tokens)
			}
		})
	}
}
