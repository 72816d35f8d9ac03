package conversation_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/internal/prompt/extract"
	"github.com/ragpilot/ragpilot/internal/prompt/markup"
)

// The forms of the notes, as they are written.
var (
	ofDocuments = regexp.MustCompile(`\[Documents "([^\n]*?)" — identical to earlier ([^"\n]+?) result, see above\.\]`)
	ofAllGroups = regexp.MustCompile(`\[Documents "[^\n]*?" — identical to earlier [^"\n]+? result, see above\.\]` +
		`(?: \[Documents "[^\n]*?" — identical to earlier [^"\n]+? result, see above\.\])*`)
	ofBegun  = regexp.MustCompile(`\[Documents "`)
	ofResult = regexp.MustCompile(`^\[Duplicate content — identical to a previous tool result ` +
		`\(([^()\s]+)\)\. Refer to the earlier result above\.\]$`)
	ofRows     = regexp.MustCompile(`^\[\.\.\. "(.*)" — identical to earlier ([^"\n]+) result, see above \.\.\.\]$`)
	ofFence    = regexp.MustCompile(` \(quoted(?:-\d+)?\)`)
	ofCutFence = regexp.MustCompile(` \((?:q|qu|quo|quot|quote|quoted|quoted-\d*)?("|$)`)
	ofID       = regexp.MustCompile(`(EXTERNAL_UNTRUSTED_CONTENT) id=\\*"[0-9A-Fa-f]+\\*"`)
	ofSource   = regexp.MustCompile(`^<document source="[^"]*"`)
	ofString   = regexp.MustCompile(`"(?:\\.|[^"\\])*"`)
)

// check fails unless what arrived is what was sent, with notes for what stands further up. names says that names of texts need not be
// looked at.
func check(t *rapid.T, form extract.Options, sent, arrived messages, names bool) {
	t.Helper()
	c := &checker{form: form, sent: sent, arrived: arrived, names: names, parsed: map[[2]int][]piece{}, gone: map[[2]int][]int{}}
	for i := range sent {
		foreign := ""
		for j := range sent[i].Texts {
			rest, err := c.text(i, j)
			if err != nil {
				t.Fatalf("message %d, text %d: %v\n%s", i, j, err, dump(sent, arrived))
			}
			if sent[i].Texts[j].Role == conversation.Tool {
				foreign += rest
			}
		}
		if forged := forgedIn(foreign); forged != "" {
			t.Fatalf("message %d: what is not ours has the form of a note: %q\n%s", i, forged, dump(sent, arrived))
		}
	}
}

type checker struct {
	form          extract.Options
	sent, arrived messages
	names         bool
	parsed        map[[2]int][]piece
	gone          map[[2]int][]int // pieces that notes stand for
}

// piece is a document of a text, or what stands between two.
type piece struct {
	text       string // all of it, with marks
	says       string // without them
	first      string // the words by which it is named
	own        bool
	label      string
	isDocument bool
}

// forgedIn returns a note that a text has, by its letters, wherever they stand; "" if there is none.
func forgedIn(text string) string {
	letters := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || r == '—' {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
	for _, form := range []string{"identicaltoaprevioustoolresult", "—identicaltoearlier"} {
		if strings.Contains(letters, form) {
			return form
		}
	}
	return ""
}

func withoutIDs(text string) string { return ofID.ReplaceAllString(text, "$1") }

// plain takes fence words out of a text, that did not have them when it was sent.
func plain(sent, arrived string) string {
	return ofFence.ReplaceAllStringFunc(arrived, func(word string) string {
		if strings.Contains(sent, word) {
			return word
		}
		return ""
	})
}

func unfenced(text string) string { return ofFence.ReplaceAllString(text, "") }

// quoted returns a name of a note without fence words. Names are cut, and so may be a fence word at the end of one.
func quoted(name string) string { return ofCutFence.ReplaceAllString(unfenced(name), "$1") }

// pieces cuts a text that was sent.
func (c *checker) pieces(i, j int) []piece {
	if known, ok := c.parsed[[2]int{i, j}]; ok {
		return known
	}
	x := c.sent[i].Texts[j]
	var out []piece
	at := 0
	add := func(from, to int, d piece) {
		d.text, d.isDocument = x.Value[from:to], true
		out = append(out, piece{text: x.Value[at:from]}, d)
		at = to
	}
	if x.Role != conversation.System {
		for r := range markup.Regions(x.Value) {
			add(r.Start, r.End, piece{says: r.Text, first: "[" + r.Label + "]", label: r.Label, own: true})
		}
	}
	if found, ok := extract.Find(x.Value, c.form); ok && at == 0 && (x.Role == conversation.System || x.Role == conversation.Tool) &&
		len(found.Docs) > 1 {
		for k, s := range found.Spans() {
			d := piece{says: found.Docs[k].Text, first: found.Docs[k].Text}
			if found.Mode == extract.JSONResults {
				d.first = found.Docs[k].Key
			}
			d.first, _, _ = strings.Cut(strings.TrimSpace(d.first), "\n")
			if source := ofSource.FindString(x.Value[s[0]:s[1]]); source != "" {
				d.says += "\x00" + source
			}
			add(s[0], s[1], d)
		}
	}
	out = append(out, piece{text: x.Value[at:]})
	c.parsed[[2]int{i, j}] = out
	return out
}

// above calls do for the texts above one.
func (c *checker) above(i, j int, do func(i, j int)) {
	for m := range c.sent {
		for n := range c.sent[m].Texts {
			if m == i && n == j {
				return
			}
			do(m, n)
		}
	}
}

// labelOf is how a note names a text.
func (c *checker) labelOf(i, j int) string {
	x := c.sent[i].Texts[j]
	switch x.Role {
	case conversation.System:
		return "system prompt"
	case conversation.User:
		return "user message"
	case conversation.Assistant:
		return "assistant message"
	}
	label := "tool"
	for _, m := range c.sent[:i] {
		for _, call := range m.Calls {
			if call.ID == x.Call {
				label = call.Tool
			}
		}
	}
	if label == "system prompt" || strings.Contains(label, "see above") {
		return "tool"
	}
	return label
}

// text checks one text, and returns what of it is not ours.
func (c *checker) text(i, j int) (rest string, err error) {
	s, a := c.sent[i].Texts[j].Value, c.arrived[i].Texts[j].Value
	role := c.sent[i].Texts[j].Role
	if role == conversation.System {
		return a, c.system(i, j)
	}
	if s == a {
		return a, nil
	}
	was := a
	switch role {
	case conversation.User:
	case conversation.Tool:
		was = plain(s, a)
	default:
		return a, fmt.Errorf("words of role %d were changed", role)
	}
	if was == s {
		return a, nil
	}
	longer := len(was) >= len(s) && utf8.RuneCountInString(was) >= utf8.RuneCountInString(s)
	if longer && !strings.Contains(a, "see above ...]") { // a row with a fence is a little longer than it came
		return a, fmt.Errorf("it is no shorter")
	}
	if m := ofResult.FindStringSubmatch(a); m != nil && role == conversation.Tool {
		return "", c.whole(i, j, m[1])
	}
	if rest, ok := c.documents(i, j); ok {
		return rest, nil
	}
	if role == conversation.Tool {
		if rest, ok := c.rows(i, j); ok {
			return rest, nil
		}
	}
	return a, fmt.Errorf("it cannot be had back")
}

// whole looks for the result that stands for another.
func (c *checker) whole(i, j int, call string) error {
	want := withoutIDs(c.sent[i].Texts[j].Value)
	found, others := false, false
	c.above(i, j, func(m, n int) {
		x := c.sent[m].Texts[n]
		if x.Role != conversation.Tool || x.Call != call && "~"+strconv.FormatUint(xxh3.HashString(x.Call), 36) != call {
			return
		}
		switch {
		case withoutIDs(plain(x.Value, x.Value)) != want:
			others = true
		case plain(x.Value, c.arrived[m].Texts[n].Value) == x.Value:
			found = true
		}
	})
	if !found {
		return fmt.Errorf("the result of %s does not stand there whole", call)
	}
	if others && !c.names {
		return fmt.Errorf("%s names two results", call)
	}
	return nil
}

// checkRecorded fails if a document neither arrived nor was sent further up.
func checkRecorded(t *rapid.T, sent, arrived messages) {
	t.Helper()
	c := &checker{sent: sent, arrived: arrived, parsed: map[[2]int][]piece{}}
	for i := range sent {
		for j := range sent[i].Texts {
			s, a := sent[i].Texts[j].Value, arrived[i].Texts[j].Value
			if m := ofResult.FindStringSubmatch(a); m != nil && s != a {
				found := false
				c.above(i, j, func(m, n int) { found = found || withoutIDs(sent[m].Texts[n].Value) == withoutIDs(s) })
				if !found {
					t.Fatalf("message %d, text %d: a result is lost\n%s", i, j, dump(sent, arrived))
				}
				continue
			}
			if strings.Contains(a, " result, see above ...]") {
				continue
			}
			was := solid(plain(s, a))
			found, ok := extract.Find(s, extract.Options{})
			if !ok || sent[i].Texts[j].Role != conversation.Tool {
				continue
			}
			for _, d := range found.Docs {
				has := strings.Contains(was, solid(d.Text)) || strings.Contains(solid(a), solid(d.Text))
				c.above(i, j, func(m, n int) {
					has = has || strings.Contains(solid(withoutIDs(sent[m].Texts[n].Value)), solid(withoutIDs(d.Text)))
				})
				if !has {
					t.Fatalf("message %d, text %d: a document is lost: %q\n%s", i, j, d.Text, dump(sent, arrived))
				}
			}
		}
	}
}
