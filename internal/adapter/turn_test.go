package adapter_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/adapter"
)

// A second turn that shows the first has references to its blocks, and a third call with the caller's own messages sends
// the second turn as it was sent. More is tested through the frameworks' wrappers.
func TestTurns(t *testing.T) {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		t.Fatal(err)
	}
	turns := adapter.NewTurns(pilot, adapter.Options{})
	hold := func(ids ...string) string {
		var blocks []contextpilot.Block
		for _, id := range ids {
			blocks = append(blocks, contextpilot.Block{ID: id, Text: "Text of " + id + ", " + strings.Repeat("which is long. ", 20)})
		}
		plan := pilot.Plan(contextpilot.Request{Blocks: blocks})
		plan.Session = "s"
		pilot.Hold(plan)
		return plan.Context()
	}
	question := func(text string) adapter.Message {
		return adapter.Message{Role: adapter.User, Texts: []string{text}}
	}
	messages := []adapter.Message{{Role: adapter.System, Texts: []string{"Be brief."}}, question(hold("a", "b") + "\nWhat?")}
	first := turns.Begin("s", messages)
	if !first.Planned || len(first.Replacements) > 0 {
		t.Fatalf("first turn: %+v", first)
	}
	first.End(contextpilot.Event{Kind: contextpilot.Served})

	messages = append(messages, adapter.Message{Texts: []string{"That."}}, question(hold("b", "c")+"\nAnd then?"))
	second := turns.Begin("s", messages)
	if !second.Planned || len(second.Replacements) != 1 {
		t.Fatalf("second turn: %+v", second)
	}
	r := second.Replacements[0]
	if r.Message != 3 || r.Text != 0 || strings.Contains(r.With, "Text of b") || !strings.Contains(r.With, "Text of c") || !strings.HasSuffix(r.With, "\nAnd then?") {
		t.Errorf("%+v", r)
	}
	second.End(contextpilot.Event{Kind: contextpilot.Served})

	again := turns.Begin("s", append(messages, adapter.Message{Texts: []string{"Then that."}}, question("Sure?")))
	if again.Planned || !cmp.Equal(again.Replacements, second.Replacements) {
		t.Errorf("third call: %+v, want the second's replacement", again)
	}
	if other := turns.Begin("other", messages); len(other.Replacements) > 0 {
		t.Errorf("another conversation: %+v", other.Replacements)
	}
}
