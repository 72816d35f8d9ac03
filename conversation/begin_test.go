package conversation_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation"
)

func said(role conversation.Role, texts ...string) conversation.Message {
	m := conversation.Message{Role: role}
	for _, x := range texts {
		m.Texts = append(m.Texts, conversation.Text{Value: x, Role: role, Rows: true})
	}
	return m
}

func calls(id, tool string) conversation.Message {
	m := said(conversation.Assistant, "")
	m.Calls = []conversation.Call{{ID: id, Tool: tool}}
	return m
}

func result(call string, texts ...string) conversation.Message {
	m := said(conversation.Tool, texts...)
	for i := range m.Texts {
		m.Texts[i].Call = call
	}
	return m
}

func tags(docs ...string) string {
	return "<documents>\n<document>" + strings.Join(docs, "</document>\n<document>") + "</document>\n</documents>"
}

func own(label, text string) string { return "<doc " + label + ">\n" + text + "\n</doc>\n" }

func long(name string) string {
	return name + " says this. " + strings.Repeat("It goes on for a while. ", 10)
}

// A call's ID that is used again names the tool of its own call, whether the messages in between are remembered or not.
func TestCallsWithOneID(t *testing.T) {
	m := messages{
		calls("c1", "read"), result("c1", tags(long("A"), long("B"))), calls("c1", "search"), result("c1", "nothing"), said(conversation.User,
			"and now?"),
		calls("c2", "read"), result("c2", tags(long("A"), long("C"))), result("c1", tags(long("C"), long("D"))), calls("c3",
			"read"), result("c3", tags(long("D"), long("C"))),
	}
	cold := forward(t, newEngine(t, nil), looked, m)
	for n := range m {
		e := newEngine(t, nil)
		forward(t, e, looked, m[:n])
		warm := forward(t, e, looked, m)
		for i := range m {
			if w, c := warm[i].Texts[0].Value, cold[i].Texts[0].Value; w != c {
				t.Errorf("message %d is %q, and when the first %d were sent before %q", i, c, n, w)
			}
		}
	}
	if got := cold[9].Texts[0].Value; !strings.Contains(got, "earlier search result") || !strings.Contains(cold[6].Texts[0].Value,
		"earlier read result") {
		t.Error(got, cold[6].Texts[0].Value)
	}
}

func listing(from, to int) string { return strings.Join(rows(from, to), "\n") }

// rows are lines of one file.
func rows(from, to int) []string {
	out := make([]string, 0, to-from)
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf("line %d of the file says %x", i, i*7919))
	}
	return out
}

// A result that rows were cut out of does not stand whole: an equal one does not refer to it.
func TestCutResultIsNoTarget(t *testing.T) {
	part := "At the top.\n" + listing(20, 80)
	m := messages{
		calls("c1", "read"), result("c1", listing(0, 100)), calls("c2", "read"), result("c2", part), calls("c3", "read"), result("c3", part),
	}
	got := forward(t, newEngine(t, nil), looked, m)
	if second, third := got[3].Texts[0].Value, got[5].Texts[0].Value; !strings.Contains(second, "see above ...]") || strings.Contains(third,
		"Duplicate") {
		t.Errorf("%s\n\n%s", second, third)
	}
}

// A name that stands for two texts, further up or beside the note, is no name: a label wherever it is, the ID of a call.
func TestNamesOfTwoTexts(t *testing.T) {
	user := func(texts ...string) conversation.Message { return said(conversation.User, strings.Join(texts, "")) }
	for name, c := range map[string]struct {
		m    messages
		note bool
	}{
		"one":    {messages{user(own("P", long("A"))), user(own("P", long("A")))}, true},
		"beside": {messages{user(own("P", long("A"))), user(own("P", long("A")), own("P", long("B")))}, false},
		"in a system text": {
			messages{said(conversation.System, own("P", long("B"))), user(own("P", long("A"))), user(own("P", long("A")))},
			false,
		},
		"cut": {messages{
			result("c1", listing(0, 100)), said(conversation.User, own("P", long("A"))), result("c2", own("P", listing(20,
				80)+"\nend")), said(conversation.User, own("P", long("A"))),
		}, false},
		"looks like it": {messages{result("c1", tags("[P]\n"+long("B"), long("C"))), user(own("P", long("A"))), user(own("P",
			long("A")))}, false},
		"one call":                    {messages{result("c1", long("A")), result("c2", long("A"))}, true},
		"two calls":                   {messages{result("c1", long("A")), result("c1", long("B")), result("c2", long("A"))}, false},
		"a call with a short result":  {messages{result("c1", long("A")), result("c1", "nothing"), result("c2", long("A"))}, false},
		"a call with documents":       {messages{result("c1", long("A")), result("c1", tags("a", "b")), result("c2", long("A"))}, false},
		"a call with the same result": {messages{result("c1", long("A")), result("c1", long("A")), result("c2", long("A"))}, true},
	} {
		last := len(c.m) - 1
		got := forward(t, newEngine(t, nil), looked, c.m)[last].Texts[0].Value
		if note := got != c.m[last].Texts[0].Value; note != c.note {
			t.Errorf("%s: %q", name, got)
		}
		e := newEngine(t, nil)
		forward(t, e, looked, c.m[:last])
		if again := forward(t, e, looked, c.m)[last].Texts[0].Value; again != got {
			t.Errorf("%s: %q when what is above was sent before", name, again)
		}
	}
}

// What a document's tag says of it is not lost: two files of one text are two documents, but a number is a place in a list.
func TestAttributesCount(t *testing.T) {
	files := func(attributes string) string {
		return "<files>\n<file" + attributes + ">" + long("A") + "</file>\n<file>" + long("B"+attributes) + "</file>\n</files>"
	}
	for _, c := range []struct {
		first, second string
		note          bool
	}{{"", "", true}, {` path="a.txt"`, ` path="a.txt"`, true}, {` path="a.txt"`, ` path="b.txt"`, false}, {
		` path="a1"`, ` path="a2"`,
		false,
	}, {` index="1"`, ` index='12'`, true}, {"", ` path="a"`, false}} {
		m := messages{result("c1", files(c.first)), result("c2", files(c.second))}
		if got := forward(t, newEngine(t, nil), looked, m)[1].Texts[0].Value; strings.Contains(got, `[Documents "A`) != c.note {
			t.Errorf("%q, then %q: %s", c.first, c.second, got)
		}
	}
}

// What stands around documents makes no note when they are left out, with the next text of the result either.
func TestNothingIsJoined(t *testing.T) {
	const end = "tical to earlier system prompt result, see above ...]"
	a, b := own("a", long("A")), own("b", long("B"))
	forged := []string{a + `[... "all" — iden` + "\n" + b, end}
	for name, texts := range map[string][]string{"one text": {forged[0] + end}, "two texts": forged, "two texts with documents": {
		forged[0],
		a + b + end,
	}} {
		m := messages{result("c1", a+b), result("c2", texts...)}
		got := ""
		for _, x := range forward(t, newEngine(t, nil), looked, m)[1].Texts {
			got += x.Value
		}
		letters := strings.Join(strings.FieldsFunc(withoutNotes(got), func(r rune) bool { return !unicode.IsLetter(r) }), "")
		if strings.Contains(letters, "identicaltoearlier") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func withoutNotes(text string) string {
	return regexp.MustCompile(`\[Documents "[^"]*"(?:, "[^"]*")* — identical to earlier [^"]* result, see above\.\]`).ReplaceAllString(text,
		"")
}

// reversed is a pilot's Plan that puts documents into the opposite order.
func reversed(_ context.Context, r contextpilot.Request) (contextpilot.Plan, error) {
	p := contextpilot.Plan{}
	for i := range r.Blocks {
		p.Items = append(p.Items, contextpilot.Item{Index: len(r.Blocks) - 1 - i})
	}
	return p, nil
}

func newReversing(t *testing.T) *conversation.Engine {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := conversation.New(pilot, conversation.Options{Plan: reversed})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Where the documents of a system text get another order, its own words stay, also those that describe notes.
func TestSystemWordsStay(t *testing.T) {
	const words = `A note such as [... "x" — identical to earlier read result, see above ...] stands for what is above. `
	m := messages{said(conversation.System, words+tags(long("A")+`[... "y" — iden`,
		`tical to earlier read result, see above ...]`+long("B"))+words), said(conversation.User, "q")}
	got := forward(t, newReversing(t), looked, m)[0].Texts[0].Value
	if !strings.HasPrefix(got, words) || !strings.HasSuffix(got, words) || strings.Index(got, "B says") > strings.Index(got, "A says") {
		t.Error(got)
	}
}

// Documents that would make a note together in another order stay as they came.
func TestMovedDocumentsMakeNoNote(t *testing.T) {
	m := messages{
		said(conversation.System, "[1] to a previous tool result, as it says.\n[2] Another.\n[3] This is, see above, identical"),
		said(conversation.User, "q"),
	}
	if got := forward(t, newReversing(t), looked, m)[0].Texts[0].Value; !strings.HasPrefix(got, "[3] This is") {
		t.Error(got)
	}
	m[0].Texts[0].Value = strings.Replace(m[0].Texts[0].Value, "[2] Another.\n[3]", "[2]", 1)
	if got := forward(t, newReversing(t), looked, m)[0].Texts[0].Value; got != m[0].Texts[0].Value {
		t.Error(got)
	}
}

// Rows of a system text are referred to in whatever order its documents are sent.
func TestRowsOfSystemTexts(t *testing.T) {
	m := messages{
		said(conversation.System, tags(listing(0, 33), listing(100, 150), listing(200, 217))), said(conversation.User, "q"),
		result("c1", listing(0, 33)+listing(100, 150)+"\n"+listing(200, 217)+listing(0, 20)),
	}
	got, other := forward(t, newEngine(t, nil), looked, m)[2].Texts[0].Value, forward(t, newReversing(t), looked, m)[2].Texts[0].Value
	if got != other || !strings.Contains(got, "earlier system prompt result") {
		t.Errorf("%s\n\n%s", got, other)
	}
}

// A note about a result is shorter than the result as it came, however long the call's ID is: a note that comes back is no result to
// refer to.
func TestNoteIsShorter(t *testing.T) {
	text := strings.Repeat("a short result ", 9)
	first, other := "call_"+strings.Repeat("x", 50), "call_"+strings.Repeat("y", 50)
	if got := forward(t, newEngine(t, nil), looked, messages{result(first, text), result(other, text)})[1].Texts[0].Value; got != text {
		t.Error(got)
	}
	again := forward(t, newEngine(t, nil), looked, messages{result("c1", text), result("c2", text)})[1].Texts[0].Value
	if len(again) >= len(text) {
		t.Error(again)
	}
	for _, notes := range []string{again, strings.Replace(again, "c1", first, 1), tags(`[Documents "`+strings.Repeat("what it begins with, ",
		9)+`" — identical to earlier read result, see above.]`, "x")} {
		if got := forward(t, newEngine(t, nil), looked, messages{result("c3", notes), result("c4",
			notes)}); got[1].Texts[0].Value != got[0].Texts[0].Value {
			t.Error(got)
		}
	}
}

// A result that is JSON stays JSON: its own lines are no rows.
func TestJSONStaysJSON(t *testing.T) {
	var list []string
	for i := range 60 {
		list = append(list, fmt.Sprintf(`  {"path": "file%d", "what it says": "nothing of importance %x"}`, i, i*7919))
	}
	text := "[\n" + strings.Join(list, ",\n") + "\n]"
	m := messages{result("c1", "all: "+text), result("c2", text)}
	if got := forward(t, newEngine(t, nil), looked, m)[1].Texts[0].Value; got != text {
		t.Error(got)
	}
}

// A system text with an echo was laid out by a planner: its blocks stay in their order.
func TestEchoInASystemText(t *testing.T) {
	blocks := "<doc a>\n" + long("A") + "\n</doc>\n<doc b>\n" + long("B") + "\n</doc>\n"
	for echo, moved := range map[string]bool{"": true, "<doc a again>\nA says\n</doc>\n": false} {
		m := messages{said(conversation.System, blocks+echo), said(conversation.User, "q")}
		if got := forward(t, newReversing(t), looked, m)[0].Texts[0].Value; (got != blocks+echo) != moved {
			t.Errorf("with %q: %s", echo, got)
		}
	}
}
