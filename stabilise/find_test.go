package stabilise_test

import (
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/internal/prompt/extract"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/stabilise"
)

// taken returns a system text as it is sent, and what left it.
func taken(t *testing.T, c stabilise.Config, text string) (rest, left string) {
	t.Helper()
	c.Place = stabilise.PlaceSystem
	m := newStabiliser(t, c).Move(stabilise.Conversation{}, []stabilise.Message{
		{Role: conversation.System, Texts: []string{text}}, {Role: conversation.User, Texts: []string{"q"}},
	}, false)
	if texts, ok := m.Texts[0]; ok {
		return texts[0], m.Behind[1]
	}
	return text, m.Behind[1]
}

func TestVolatileLines(t *testing.T) {
	c := stabilise.Config{Rules: stabilise.Rules{Volatile: true}, Patterns: []string{`(?i)^build:`, `session-[0-9a-f]+`}}
	for _, c2 := range []struct{ name, text, rest, left string }{
		{"a line", "A\nCurrent time: 2026-11-27T04:14:05Z\nB", "A\nB", "Current time: 2026-11-27T04:14:05Z"},
		{"the last line", "A\nToday is Friday, November 27", "A\n", "Today is Friday, November 27"},
		{"a sentence", "You help. Today is Friday, November 27, 2026. Be brief.", "You help. Be brief.", "Today is Friday, November 27, 2026."},
		{"the last sentence", "You help. It is 4:14 p.m. UTC now.\nB", "You help. \nB", "It is 4:14 p.m. UTC now."},
		{"a list", "- Date: 2026-11-27\r\n- OS: Linux", "- OS: Linux", "- Date: 2026-11-27"},
		{"an element", "<now>2026-11-27 04:14</now>\nB", "B", "<now>2026-11-27 04:14</now>"},
		{"German", "Heute ist Freitag, der 27. November 2026.\nB", "B", "Heute ist Freitag, der 27. November 2026."},
		{"Chinese", "B\n现在是2026年11月27日16时14分。", "B\n", "现在是2026年11月27日16时14分。"},
		{"a seed", "Build: 17\nUser of session-0af1\nB", "B", "Build: 17\nUser of session-0af1"},
		{"two", "Current date: 2026-11-27\nA\nCurrent time: 04:14\n", "A\n", "Current date: 2026-11-27\nCurrent time: 04:14"},
		// What stays: no present time, or too much beside it, or no line of its own.
		{"a cutoff", "Knowledge cutoff: 2024-06", "", ""},
		{"a date of a law", "The law of 2026-01-01 holds.", "", ""},
		{"no time", "Answer in the current language.", "", ""},
		{"long", "Today is Friday, November 27 and you must answer all questions in the style of a pirate who has lost his ship and his hat", "", ""},
		{"JSON", "{\n\"now\": \"2026-11-27\"\n}", "", ""},
		{"a tag of others", "<page now=\"2026-11-27\">\nA\n</page>", "", ""},
		{"code", "```\nCurrent time: 2026-11-27\n```", "", ""},
		// The author of a document is not the system.
		{"a document", "<documents>\n<document>\nCurrent time: 2026-11-27\n</document>\n<document>b</document>\n</documents>", "", ""},
		{"behind a document", "A\n<documents><document>a</document><document>b</document></documents>\nToday is Friday", "A\n<documents><document>a</document><document>b</document></documents>\n", "Today is Friday"},
		{"behind what may be one", "A [1] b\nToday is Friday", "", ""},
		{"before what may be one", "Today is Friday\nA [1] b", "A [1] b", "Today is Friday"},
	} {
		want := c2.rest
		if c2.left == "" {
			want = c2.text
		}
		if rest, left := taken(t, c, c2.text); rest != want || left != c2.left {
			t.Errorf("%s: %q stays and %q leaves; want %q and %q", c2.name, rest, left, want, c2.left)
		}
	}
}

func TestMemories(t *testing.T) {
	c := stabilise.Config{Rules: stabilise.Rules{Memories: true}}
	for _, c2 := range []struct{ name, text, rest, left string }{
		{"an element", "A\n<Memories user=\"1\">\n- x\n\n- y\n</memories>\nB", "A\nB", "<Memories user=\"1\">\n- x\n\n- y\n</memories>"},
		{"an element in a line", "A\n<memory>x</memory> B", "A\n B", "<memory>x</memory>"},
		{"an open element", "A\n<memories>\n- x", "", ""},
		{"in a sentence", "The <memories> are yours.", "", ""},
		{"a section", "A\n## Relevant Memories:\n- x\n### Of today\n- y\n## Rules\nB", "A\n## Rules\nB", "## Relevant Memories:\n- x\n### Of today\n- y"},
		{"a section in front of documents", "# memories\n- x\n<documents>\n", "<documents>\n", "# memories\n- x"},
		{"a label", "A\nUser memories:\n\n- x\n- y\n\nB", "A\n\nB", "User memories:\n\n- x\n- y"},
		{"a label in a document", "<documents><document>\nMemories:\n- x\n</document><document>b</document></documents>", "", ""},
		{"documents behind a section", "## Memories\n- x\n\n[1] a\n[2] b\n[3] c", "", ""},
		{"what may be a document in a section", "## Memories\n- x\n\n[1] a", "", ""},
		{"items of an element", "<memories>\n<item>x</item>\n<item>y</item>\n</memories>\nB", "B", "<memories>\n<item>x</item>\n<item>y</item>\n</memories>"},
		{"an element that ends in a document", "<memories>\n<doc>\n</memories></doc><doc>b</doc>", "", ""},
		{"the time stays", "Memories:\n- x\n\nToday is Friday", "\nToday is Friday", "Memories:\n- x"},
	} {
		want := c2.rest
		if c2.left == "" {
			want = c2.text
		}
		if rest, left := taken(t, c, c2.text); rest != want || left != c2.left {
			t.Errorf("%s: %q stays and %q leaves; want %q and %q", c2.name, rest, left, want, c2.left)
		}
	}
	c.Markers = []string{"<facts>", "What I know:"}
	rest, left := taken(t, c, "<facts>x</facts>\nwhat i KNOW:\ny\n\n## Memories\nz")
	if rest != "\n## Memories\nz" || left != "<facts>x</facts>\nwhat i KNOW:\ny" {
		t.Errorf("own markers: %q stays and %q leaves", rest, left)
	}
}

func TestBadConfigurations(t *testing.T) {
	for _, c := range []stabilise.Config{
		{Patterns: []string{"("}},
		{Patterns: []string{"x*"}},
		{Markers: []string{"memories"}},
		{Markers: []string{"<a b>"}},
		{Markers: []string{"##"}},
		{Markers: []string{"<>"}},
		{Place: 9},
		{Memory: -1},
	} {
		if s, err := stabilise.New(c); err == nil || s != nil || !strings.HasPrefix(err.Error(), "stabilise: Config.") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if r, err := stabilise.ParseRules([]string{"tools", " memories"}); err != nil || r != (stabilise.Rules{Tools: true, Memories: true}) {
		t.Errorf("rules %+v, %v", r, err)
	}
	if _, err := stabilise.ParseRules([]string{"tool"}); err == nil || !strings.Contains(err.Error(), `"tool"`) {
		t.Errorf("an unknown rule: %v", err)
	}
	if _, err := stabilise.ParsePlace("behind"); err == nil || !strings.Contains(err.Error(), `"behind"`) {
		t.Errorf("an unknown place: %v", err)
	}
}

// Documents that only a line parts are documents, too.
func TestSeparatedDocuments(t *testing.T) {
	s := newStabiliser(t, all(stabilise.PlaceSystem))
	const text = "Today is Friday\n---\nBuild 2\n---\n## Memories\nx"
	m := s.Move(stabilise.Conversation{Form: extract.Options{Mode: extract.Separator}}, []stabilise.Message{
		{Role: conversation.System, Texts: []string{text}}, {Role: conversation.User, Texts: []string{"q"}},
	}, false)
	if len(m.Texts)+len(m.Behind) > 0 || s.Stats().Kept != 3 {
		t.Errorf("%v left %v, counted %+v", m.Behind, m.Texts, s.Stats())
	}
}

// A text that is made to be slow is not: quadratic it would take hours, and Go's own limit for a test ends it.
func TestLinear(t *testing.T) {
	testkit.NotUnderRace(t)
	for _, piece := range []string{
		"<memory>\n", "</memory\n", "Memories:\n", "## Memories\n", "# Memories\n", "Today is Friday. ", "Today is Friday\n", "[1\n", "{ ", "04:14 ",
	} {
		n := 1 << 18
		if strings.HasPrefix(piece, "<") { // looking for an end is fast
			n = 1 << 21
		}
		for _, front := range []string{"", "[1] \n", "<memories>\n"} {
			taken(t, stabilise.Config{Rules: stabilise.Rules{Volatile: true, Memories: true}}, front+strings.Repeat(piece, n))
		}
	}
}

// Nothing is lost and nothing added, whatever a text holds.
func FuzzMove(f *testing.F) {
	f.Add("A. Today is Friday. B\n<memories>x</memories>\n## Memory\n[1] x {\"a\"")
	f.Fuzz(func(t *testing.T, text string) {
		rest, left := taken(t, stabilise.Config{Rules: stabilise.Rules{Volatile: true, Memories: true}}, text)
		if left == "" && rest != text {
			t.Errorf("%q became %q, and nothing left it", text, rest)
		}
		if len(rest)+len(left) > len(text)+1+strings.Count(left, "\n") {
			t.Errorf("%q became %q and %q", text, rest, left)
		}
	})
}
