package framework_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/framework"
)

// A second turn that shows the first has references to its blocks, and a third call with the caller's own messages sends
// the second turn as it was sent. More is tested through the frameworks' wrappers.
func TestTurns(t *testing.T) {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		t.Fatal(err)
	}
	turns := framework.NewCalls(pilot, framework.Options{})
	hold := func(ids ...string) string {
		var blocks []contextpilot.Block
		for _, id := range ids {
			blocks = append(blocks, contextpilot.Block{ID: id, Text: "Text of " + id + ", " + strings.Repeat("which is long. ", 20)})
		}
		plan := pilot.Plan(contextpilot.Request{Blocks: blocks})
		plan.Session = "s"
		framework.OffersOf(pilot).Offer(plan)
		return plan.Context()
	}
	question := func(text string) framework.Message {
		return message(conversation.User, text)
	}
	messages := []framework.Message{message(conversation.System, "Be brief."), question(hold("a", "b") + "\nWhat?")}
	first := turns.Begin("s", messages)
	if !first.Planned || len(first.Replacements) > 0 {
		t.Fatalf("first turn: %+v", first)
	}
	first.End(contextpilot.Event{Kind: contextpilot.Served})

	messages = append(messages, message(conversation.Assistant, "That."), question(hold("b", "c")+"\nAnd then?"))
	second := turns.Begin("s", messages)
	if !second.Planned || len(second.Replacements) != 1 {
		t.Fatalf("second turn: %+v", second)
	}
	r := second.Replacements[0]
	if r.Message != 3 || r.Text != 0 || strings.Contains(r.With, "Text of b") || !strings.Contains(r.With, "Text of c") ||
		!strings.HasSuffix(r.With, "\nAnd then?") {
		t.Errorf("%+v", r)
	}
	second.End(contextpilot.Event{Kind: contextpilot.Served})

	again := turns.Begin("s", append(messages, message(conversation.Assistant, "Then that."), question("Sure?")))
	if again.Planned || !cmp.Equal(again.Replacements, second.Replacements) {
		t.Errorf("third call: %+v, want the second's replacement", again)
	}
	if other := turns.Begin("other", messages); !cmp.Equal(other.Replacements, second.Replacements) {
		t.Errorf("the same messages under another name: %+v", other.Replacements)
	}
}

// At the front the plan is sent with its hint, behind messages the retriever's order, and of a part of the plan nothing is changed.
func TestPlace(t *testing.T) {
	pilot, err := contextpilot.New(contextpilot.Config{Policy: "sorted", Notes: contextpilot.Notes{AlwaysHint: true}})
	if err != nil {
		t.Fatal(err)
	}
	turns := framework.NewCalls(pilot, framework.Options{Cite: true})
	one := func(id string) string { return "<doc " + id + ">\nText of " + id + ".\n</doc>" }
	user := func(text string) framework.Message { return message(conversation.User, text) }
	hello := []framework.Message{message(conversation.System, "Be brief."), user("Hello."), message(conversation.Assistant, "Hello.")}
	for _, test := range []struct {
		name   string
		before []framework.Message
		text   string
		want   string // "": the text is not replaced
		labels []string
	}{
		{"front", nil, one("a") + "\n" + one("b") + "\nWhy?", one("a") + "\n" + one("b") + "\nRelevance: [b] > [a].\nWhy?", []string{"a", "b"}},
		{
			"behind a system text", hello[:1], one("a") + "\n" + one("b") + "\nWhy?", one("a") + "\n" + one("b") + "\nRelevance: [b] > [a].\nWhy?",
			[]string{"a", "b"},
		},
		{"behind messages", hello, one("a") + "\n" + one("b") + "\nWhy?", one("b") + "\n" + one("a") + "\nWhy?", []string{"b", "a"}},
		{"a part", nil, one("a") + "\nWhy?", "", []string{"a"}},
		{"a part behind messages", hello, one("b") + "\nWhy?", "", []string{"b"}},
		{"in another order", nil, one("b") + "\n" + one("a") + "\nWhy?", "", []string{"b", "a"}},
		{"none", nil, one("c") + "\nWhy?", "", nil},
	} {
		plan := pilot.Plan(contextpilot.Request{Blocks: []contextpilot.Block{{ID: "b", Text: "Text of b."}, {ID: "a", Text: "Text of a."}}})
		plan.Session = test.name
		framework.OffersOf(pilot).Offer(plan)
		live := pilot.Stats().LiveRequests
		call := turns.Begin(test.name, append(slices.Clip(test.before), user(test.text)))
		var with string
		if len(call.Replacements) == 1 {
			with = call.Replacements[0].With
		}
		if with != test.want || len(call.Replacements) > 1 {
			t.Errorf("%s: %+v", test.name, call.Replacements)
		}
		var labels []string
		for _, it := range call.Plan.Items {
			labels = append(labels, it.Label)
			if cited, ok := call.Sources.Resolve(it.Label); !ok || cited.Documents[0].Rank != map[string]int{"b": 1, "a": 2}[it.Label] {
				t.Errorf("%s: [%s] is %+v", test.name, it.Label, cited)
			}
		}
		if !cmp.Equal(labels, test.labels) || call.Planned != (labels != nil) {
			t.Errorf("%s: planned are %q", test.name, labels)
		}
		if now := pilot.Stats().LiveRequests; call.Planned != (now == live) {
			t.Errorf("%s: %d live requests, %d before", test.name, now, live)
		}
		call.End(contextpilot.Event{Kind: contextpilot.Gone})
		if now := pilot.Stats().LiveRequests; now != live-1 {
			t.Errorf("%s: %d live requests after the end, %d before", test.name, now, live)
		}
	}
}

func message(role conversation.Role, text string) framework.Message {
	return framework.Message{Role: role, Texts: []conversation.Text{{Value: text}}}
}
