package contextpilot_test

import (
	"fmt"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// An engine counts in tokens of its own. What it says of a prompt is taken in proportion to its length, head included, and
// neither the answer nor what was lost before changes that.
func TestEngineCountsOtherwise(t *testing.T) {
	const head, block = 48, 32
	for _, c := range []struct {
		engine, planned int // tokens of the engine for so many planned; 0: it does not say how long the prompt is
	}{{0, 1}, {1, 1}, {2, 1}, {8, 5}, {1, 2}} {
		t.Run(fmt.Sprint(c.engine, ":", c.planned), func(t *testing.T) {
			p := newPilot(t, contextpilot.Config{Policy: "retrieval"})
			p.Plan(contextpilot.Request{ID: "1", HeadTokens: head, Blocks: blocks("a", "b", "c", "d")})
			path, _ := p.Resident(contextpilot.Scope{}, "1")
			p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: "1", Output: 40})
			for _, step := range []struct{ left, want int }{{3, 3}, {3, 3}, {1, 1}, {2, 1}} { // blocks: nothing comes back
				ev := contextpilot.Event{Kind: contextpilot.Shrunk, Request: "1", Tokens: head + step.left*block}
				if c.engine > 0 {
					ev.Tokens, ev.Prompt = ev.Tokens*c.engine/c.planned, (head+path)*c.engine/c.planned
				}
				p.Observe(ev)
				if got, _ := p.Resident(contextpilot.Scope{}, "1"); got != step.want*block {
					t.Errorf("%d of %d tokens: %d are left in the index, want %d", ev.Tokens, ev.Prompt, got, step.want*block)
				}
			}
			if err := p.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// The same for what has moved: a prompt of which all stays in the engine's memory is worth all of it.
func TestMovedCountsOtherwise(t *testing.T) {
	for _, per := range []int{1, 4} { // planned tokens for one of the engine
		p := newPilot(t, contextpilot.Config{LoadCost: map[string]float64{"disk": 0.9}})
		p.Plan(contextpilot.Request{ID: "1", Blocks: big("a", "b", "c")})
		path, _ := p.Resident(contextpilot.Scope{}, "1")
		p.Plan(contextpilot.Request{ID: "2", Blocks: big("d", "e")})
		p.Observe(contextpilot.Event{Kind: contextpilot.Moved, Request: "1", Tokens: path / per, Prompt: path / per, Tier: "disk"})
		if got := sent(p.Plan(contextpilot.Request{Blocks: big("e", "d", "c", "b", "a")})); got[:5] != "a b c" {
			t.Errorf("%d planned tokens for one of the engine: sent %q", per, got)
		}
	}
}

// The answer behind the prompt is in tokens of the engine on both sides.
func TestEngineCountsAnswers(t *testing.T) {
	const head, block, answer = 48, 32, 40
	for _, c := range []struct{ engine, planned int }{{0, 1}, {1, 1}, {2, 1}, {8, 5}, {1, 2}} {
		p := newPilot(t, contextpilot.Config{Policy: "retrieval"})
		p.Plan(contextpilot.Request{ID: "1", HeadTokens: head, Blocks: blocks("a", "b", "c", "d")})
		path, _ := p.Resident(contextpilot.Scope{}, "1")
		p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: "1", Output: answer})
		for _, step := range []struct{ prompt, answer, want int }{
			{path, answer, path + answer}, {path, answer / 2, path + answer/2}, {path, 0, path}, {3 * block, 0, 3 * block},
		} {
			ev := contextpilot.Event{Kind: contextpilot.Shrunk, Request: "1", Tokens: head + step.prompt}
			if c.engine > 0 {
				ev.Tokens, ev.Prompt = ev.Tokens*c.engine/c.planned, (head+path)*c.engine/c.planned
			}
			ev.Tokens += step.answer
			p.Observe(ev)
			if got, _ := p.Resident(contextpilot.Scope{}, "1"); got != step.want {
				t.Errorf("%d:%d: %d tokens, of a prompt of %d: %d are left in the index, want %d", c.engine, c.planned, ev.Tokens, ev.Prompt, got,
					step.want)
			}
		}
	}
}
