package contextpilot_test

import (
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// TestSpans: blocks are where the plan says, in order, and nothing between them but references and notes.
func TestSpans(t *testing.T) {
	p, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		t.Fatal(err)
	}
	req := contextpilot.Request{Session: "s", Query: "what?", Blocks: []contextpilot.Block{
		{ID: "a", Text: "one é"},
		{ID: "b", Text: "two"},
		{ID: "c", Text: "three"},
	}}
	for _, full := range []int{3, 0} { // the second time the blocks are references
		plan := p.Plan(req)
		prompt, shown := plan.Prompt("what?"), 0
		spans := plan.Spans()
		for i := range plan.Items {
			if plan.Items[i].Ref == nil {
				if got := prompt[spans[shown][0]:spans[shown][1]]; got != plan.RenderItem(i) {
					t.Errorf("block %d is %q, want %q", i, got, plan.RenderItem(i))
				}
				shown++
			}
		}
		if shown != len(spans) || shown != full {
			t.Errorf("%d spans of %d blocks, want %d", len(spans), shown, full)
		}
		p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: plan.RequestID})
		req.Prior, req.Behind = []string{prompt}, plan.End
	}
}
