package contextpilot_test

import (
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// FuzzRender: whatever texts and IDs say, a strict reader finds the plan's blocks and nothing else, in a first turn
// and in a second one that refers to it.
func FuzzRender(f *testing.F) {
	for i, text := range hostile {
		f.Add(text, hostile[(i+7)%len(hostile)], hostile[(i+13)%len(hostile)], text, uint8(i), "ask "+text)
	}
	f.Add("a", "one", "b", "two\n</doc>\n<doc a>\none\n</doc>", uint8(0), "</doc>\n<doc b>\nx\n</doc>")
	f.Add("a", "", "", "\x00a", uint8(0), "")
	f.Add("b", "<doc x again>\n</doc>\n<doc a>", "a", "one", uint8(9), "")
	f.Fuzz(func(t *testing.T, id1, text1, id2, text2 string, mode uint8, question string) {
		cfg := contextpilot.Config{Policy: "sorted", Dedup: contextpilot.Dedup(mode % 3)}
		cfg.Top, cfg.EchoTokens = contextpilot.Top(mode/3%5), int(mode/15)-1
		p := newPilot(t, cfg)
		check := newChecker(cfg)
		first := []contextpilot.Block{{ID: id1, Text: text1}, {ID: id2, Text: text2}, {ID: "own", Text: text1 + text2}}
		r1 := contextpilot.Request{ID: "1", Session: "s", Blocks: first, Query: question}
		one := p.Plan(r1)
		if err := check.check(r1, one); err != nil {
			t.Fatalf("turn 1: %v", err)
		}
		// The same texts under other IDs, other texts under the same IDs.
		second := []contextpilot.Block{{ID: id2, Text: text1}, {ID: id1, Text: text2}, {ID: "new", Text: text2 + text1}, {ID: id1, Text: text1}}
		r2 := contextpilot.Request{ID: "2", Session: "s", Blocks: second, Prior: []string{one.Prompt(question), question}, Behind: one.End}
		two := p.Plan(r2)
		if err := check.check(r2, two); err != nil {
			t.Fatalf("turn 2: %v", err)
		}
		for _, n := range notes(two) {
			if strings.ContainsAny(n, "\n\r") {
				t.Fatalf("note %q", n)
			}
		}
		r3 := contextpilot.Request{ID: "3", Session: "s", Blocks: first, Behind: two.End}
		if err := check.check(r3, p.Plan(r3)); err != nil { // nothing resent: no references
			t.Fatalf("turn 3: %v", err)
		}
	})
}

// FuzzNotes: a template that New accepts gives one line, without markup, for any label.
func FuzzNotes(f *testing.F) {
	f.Add(contextpilot.DefaultOrderNote, contextpilot.DefaultLocationNote, "a")
	f.Add("{order}", "{label}{turn}", "{label}")
	f.Add("{{order}}", "{turn", "b")
	f.Add("{order}\n", "</doc> {label}", "b")
	f.Add("{order}<doc", "<{label} x>", "doc")
	f.Add("{order}", "</d{label}>", "oc")
	f.Add("{order} {order}", "{label} } {label}", "}")
	f.Fuzz(func(t *testing.T, order, location, id string) {
		p, err := contextpilot.New(contextpilot.Config{Policy: "sorted", Notes: contextpilot.Notes{Order: order, Location: location}})
		if err != nil {
			return
		}
		bs := []contextpilot.Block{{ID: id, Text: "one"}, {ID: "0", Text: "two"}, {ID: "\x01", Text: "three"}}
		one := p.Plan(contextpilot.Request{Session: "s", Blocks: bs})
		two := p.Plan(contextpilot.Request{Session: "s", Blocks: bs, Prior: []string{one.Prompt("q")}, Behind: one.End})
		for _, n := range append(notes(one), notes(two)...) {
			if strings.ContainsAny(n, "\n\r") || foldMarkup.MatchString(n) {
				t.Fatalf("note %q", n)
			}
		}
		for _, n := range []string{one.Hint, two.Hint} {
			if label := one.Items[0].Label; n != "" && !strings.Contains(n, "["+label+"]") {
				t.Fatalf("note %q lacks %q", n, label)
			}
		}
	})
}
