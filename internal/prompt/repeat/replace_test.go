package repeat_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/prompt/repeat"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// file returns lines that are cut into several blocks.
func file(name string, from, to int) string {
	lines := make([]string, 0, to-from)
	for i := from; i < to; i++ {
		lines = append(lines, fmt.Sprintf("line %03d of %s, which is long enough for a reference to be shorter", i, name))
	}
	return strings.Join(lines, "\n")
}

// numbered puts line numbers in front of lines.
func numbered(text string, first, step int) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = fmt.Sprintf("%6d|%s", first+i*step, lines[i])
	}
	return strings.Join(lines, "\n")
}

func tool(message int, text string) repeat.Text {
	return repeat.Text{Kind: repeat.ToolResult, Message: message, Label: "read", Text: text}
}

func quoted(t testing.TB, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// changed returns which texts were shortened.
func changed(in []repeat.Text, r repeat.Replaced) []int {
	var out []int
	for i := range in {
		if r.Texts[i] != in[i].Text {
			out = append(out, i)
		}
	}
	return out
}

func TestReplace(t *testing.T) {
	a, b := file("a", 0, 90), file("b", 0, 90)
	user := func(message int, text string) repeat.Text {
		return repeat.Text{Message: message, Label: repeat.UserMessage, Text: text}
	}
	system := func(text string) repeat.Text {
		return repeat.Text{Kind: repeat.System, Label: repeat.SystemPrompt, Text: text}
	}
	fixed := func(x repeat.Text) repeat.Text {
		x.Fixed = true
		return x
	}
	one := strings.Repeat("one block of one line ", 20)
	tests := []struct {
		name string
		in   []repeat.Text
		want []int
	}{
		{"no texts", nil, nil},
		{"nothing twice", []repeat.Text{tool(1, a), tool(2, b)}, nil},
		{"another message", []repeat.Text{tool(1, a), tool(2, a), tool(3, a)}, []int{1, 2}},
		{"the same message", []repeat.Text{tool(1, a), tool(1, a)}, nil},
		{"the first message again, later", []repeat.Text{tool(1, a), tool(2, b), tool(1, a)}, nil},
		{"twice in one text", []repeat.Text{tool(1, a+"\n"+a)}, nil},
		{"a system prompt is never shortened", []repeat.Text{tool(1, a), system(a)}, nil},
		{"a repeat of the system prompt", []repeat.Text{system(a), tool(0, a)}, []int{1}},
		{"two system prompts", []repeat.Text{system(a), system(a)}, nil},
		{"a fixed text is never shortened", []repeat.Text{tool(1, a), fixed(tool(2, a)), tool(3, a)}, []int{2}},
		{"a fixed text is referred to", []repeat.Text{fixed(tool(1, a)), tool(2, a)}, []int{1}},
		{"one block stays", []repeat.Text{tool(1, one), tool(2, one)}, nil},
		{"one block is referred to", []repeat.Text{tool(1, file("a", 0, 3)), tool(2, file("a", 0, 3)+"\n"+b)}, nil},
		{"a short text", []repeat.Text{tool(1, "a\nb\nc\nd"), tool(2, "a\nb\nc\nd")}, nil},
		{"a listing from another line on", []repeat.Text{tool(1, numbered(a, 1, 1)), tool(2, numbered(a, 501, 1))}, []int{1}},
		{"a listing of a text", []repeat.Text{tool(1, a), tool(2, numbered(a, 7, 1))}, []int{1}},
		{"a table with other numbers", []repeat.Text{tool(1, numbered(a, 10, 10)), tool(2, numbered(a, 500, 10))}, nil},
		{"the same table", []repeat.Text{tool(1, numbered(a, 10, 10)), tool(2, numbered(a, 10, 10))}, []int{1}},
		{"JSON", []repeat.Text{tool(1, quoted(t, map[string]string{"content": a})), tool(2, quoted(t, map[string]string{"text": a}))}, []int{1}},
		{"JSON and text", []repeat.Text{user(1, a), tool(2, quoted(t, map[string]string{"stdout": a, "content": "short"}))}, []int{1}},
		{"a user's JSON is one line", []repeat.Text{user(1, a), user(2, quoted(t, map[string]string{"content": a}))}, nil},
		{"JSON with another member", []repeat.Text{user(1, a), tool(2, quoted(t, map[string]string{"words": a}))}, nil},
		{"JSON with a member that is no string", []repeat.Text{user(1, a), tool(2, quoted(t, map[string]any{"content": []string{a}}))}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := repeat.Replace(tt.in, 0)
			if diff := cmp.Diff(tt.want, changed(tt.in, r)); diff != "" {
				t.Errorf("shortened texts (-want +got):\n%s", diff)
			}
			checkNothingLost(t, tt.in, r, 0)
		})
	}
}

// A reference names the text that has the block and shows the first 80 characters of it.
func TestReferences(t *testing.T) {
	words := strings.Repeat("ü", 200) + "\n" + file("a", 1, 60)
	for _, x := range []struct {
		first repeat.Text
		label string
	}{
		{repeat.Text{Kind: repeat.System, Label: repeat.SystemPrompt, Text: words}, "system prompt"},
		{repeat.Text{Label: repeat.UserMessage, Text: words}, "user message"},
		{repeat.Text{Label: repeat.AssistantMessage, Text: words}, "assistant message"},
		{tool(0, words), "read"},
	} {
		r := repeat.Replace([]repeat.Text{x.first, tool(1, words)}, 0)
		got, _, _ := strings.Cut(r.Texts[1], "\n")
		if want := `[... "` + strings.Repeat("ü", 80) + `" — identical to earlier ` + x.label + ` result, see above ...]`; got != want {
			t.Errorf("reference %q, want %q", got, want)
		}
		if r.CharsBefore != len([]rune(words)) || r.CharsAfter != len([]rune(r.Texts[1])) || r.CharsSaved != r.CharsBefore-r.CharsAfter {
			t.Errorf("characters are not what was counted: %+v", r)
		}
		if (r.SystemBlocksMatched > 0) != (x.first.Kind == repeat.System) {
			t.Errorf("%s: %d blocks of the system prompt", x.label, r.SystemBlocksMatched)
		}
	}
}

// What JSON says next to the replaced blocks keeps its bytes, escapes and white space too.
func TestJSONKeepsItsBytes(t *testing.T) {
	a, own := file("a", 0, 90), `own \u00e9 \/ \"quoted\" \ud800 text\u000a`
	head, tail := " {\n \"path\" : \"p\\/q\",\"content\":\"short\",\t\"output\":  \"", "\" , \"n\":1.0}\n"
	raw := head + strings.ReplaceAll(a, "\n", `\n`) + `\n` + strings.Repeat(own, 3) + tail
	in := []repeat.Text{tool(1, a), tool(2, raw)}
	r := repeat.Replace(in, 0)
	got := r.Texts[1]
	if !strings.HasPrefix(got, head+`[... \"line 000 of a,`) {
		t.Errorf("begins %.120q", got)
	}
	if end := strings.Repeat(own, 3) + tail; !strings.HasSuffix(got, end) {
		t.Errorf("ends %q", got[max(0, len(got)-200):])
	}
	if !json.Valid([]byte(got)) {
		t.Errorf("no JSON any more: %q", got)
	}
	// Of two members with one name the last one counts, as for those who decode it.
	twice := `{"content":` + quoted(t, file("b", 0, 90)) + `,"content":` + quoted(t, a) + `}`
	got = repeat.Replace([]repeat.Text{tool(1, a), tool(2, twice)}, 0).Texts[1]
	if !strings.HasPrefix(got, `{"content":`+quoted(t, file("b", 0, 90))+`,"content":"[... `) {
		t.Errorf("two members: %.300q", got)
	}
}

// A document that holds what looks like a reference is a document.
func TestReferencesAreNotRead(t *testing.T) {
	fake := `[... "line 000 of a" — identical to earlier read result, see above ...]`
	a := strings.ReplaceAll(file("a", 0, 90), "line 01", fake+"line 01")
	in := []repeat.Text{tool(1, a), tool(2, fake+"\n"+fake+"\n"+fake+"\n"+fake), tool(3, a)}
	r := repeat.Replace(in, 0)
	if diff := cmp.Diff([]int{2}, changed(in, r)); diff != "" {
		t.Errorf("shortened texts (-want +got):\n%s", diff)
	}
	checkNothingLost(t, in, r, 0)
	again := []repeat.Text{tool(1, r.Texts[0]), tool(2, r.Texts[1]), tool(3, r.Texts[2])}
	if diff := cmp.Diff(r.Texts, repeat.Replace(again, 0).Texts); diff != "" {
		t.Errorf("a second time (-first +second):\n%s", diff)
	}
}

// A long text costs no more than many short ones: quadratic it would take hours, and Go's own limit for a test ends it.
func TestLongTextsAreQuick(t *testing.T) {
	testkit.NotUnderRace(t)
	for _, piece := range []string{"\n", "x\n", "1|", "|", " ", "\\", `\n`, "{", `{"content":"`, "[[", "é\n", "  12|\n"} {
		long := strings.Repeat(piece, 500_000)
		for _, text := range []string{long, `{"content":"` + long + `"}`, quoted(t, map[string]string{"content": long})} {
			repeat.Replace([]repeat.Text{tool(1, text), tool(2, text), tool(3, text)}, 1)
		}
	}
}
