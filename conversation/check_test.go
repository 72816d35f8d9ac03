package conversation_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
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
	ofAllGroups = regexp.MustCompile(`\[Documents "[^\n]*?" — identical to earlier [^"\n]+? result, see above\.\](?: \[Documents "[^\n]*?" — identical to earlier [^"\n]+? result, see above\.\])*`)
	ofBegun     = regexp.MustCompile(`\[Documents "`)
	ofResult    = regexp.MustCompile(`^\[Duplicate content — identical to a previous tool result \(([^()\s]+)\)\. Refer to the earlier result above\.\]$`)
	ofRows      = regexp.MustCompile(`^\[\.\.\. "(.*)" — identical to earlier ([^"\n]+) result, see above \.\.\.\]$`)
	ofFence     = regexp.MustCompile(` \(quoted(?:-\d+)?\)`)
	ofCutFence  = regexp.MustCompile(` \((?:q|qu|quo|quot|quote|quoted|quoted-\d*)?("|$)`)
	ofID        = regexp.MustCompile(`(EXTERNAL_UNTRUSTED_CONTENT) id=\\*"[0-9A-Fa-f]+\\*"`)
	ofSource    = regexp.MustCompile(`^<document source="[^"]*"`)
	ofString    = regexp.MustCompile(`"(?:\\.|[^"\\])*"`)
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
	if found, ok := extract.Find(x.Value, c.form); ok && at == 0 && (x.Role == conversation.System || x.Role == conversation.Tool) && len(found.Docs) > 1 {
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

// system checks a system text: its documents may have another order, and be fenced.
func (c *checker) system(i, j int) error {
	s, a := c.sent[i].Texts[j].Value, c.arrived[i].Texts[j].Value
	list := c.pieces(i, j)
	was := plain(s, a)
	if len(list) == 1 { // where it is not sure which the documents are, all may be fenced
		if was != s {
			return fmt.Errorf("words of a system text were changed")
		}
		return nil
	}
	head, tail := list[0].text, list[len(list)-1].text
	if !strings.HasPrefix(a, head) || !strings.HasSuffix(a, tail) {
		return fmt.Errorf("words around the documents of a system text were changed")
	}
	if forged := forgedIn(a[len(head) : len(a)-len(tail)]); forged != "" {
		return fmt.Errorf("a note of a document of a system text was not fenced: %q", forged)
	}
	if was == s {
		return nil
	}
	for m := range c.sent[:i] {
		if c.sent[m].Role != conversation.System {
			return fmt.Errorf("documents were moved behind a history")
		}
	}
	used := make([]bool, len(list))
	var fits func(k int, left string) bool
	fits = func(k int, left string) bool {
		if k == len(list) {
			return left == ""
		}
		if !list[k].isDocument {
			return strings.HasPrefix(left, list[k].text) && fits(k+1, left[len(list[k].text):])
		}
		for n := range list {
			if list[n].isDocument && !used[n] && strings.HasPrefix(left, list[n].text) {
				used[n] = true
				if fits(k+1, left[len(list[n].text):]) {
					return true
				}
				used[n] = false
			}
		}
		return false
	}
	if !fits(0, was) {
		return fmt.Errorf("a system text has other documents")
	}
	return nil
}

// solid returns a text without white space and commas: what parts documents goes with them.
func solid(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == ',' {
			return -1
		}
		return r
	}, text)
}

// documents checks a text with a note in place of some of its documents.
func (c *checker) documents(i, j int) (rest string, ok bool) {
	list := c.pieces(i, j)
	if len(list) == 1 {
		return "", false
	}
	// What is not ours may begin as a note does: it is looked at from each place on.
	a := c.arrived[i].Texts[j].Value
	for _, at := range ofBegun.FindAllStringIndex(a, -1) {
		if rest, ok := c.documentsFrom(i, j, at[0]); ok {
			return rest, true
		}
	}
	return c.documentsFrom(i, j, 0)
}

func (c *checker) documentsFrom(i, j, at int) (rest string, ok bool) {
	s, a := c.sent[i].Texts[j].Value, c.arrived[i].Texts[j].Value
	list := c.pieces(i, j)
	var found []string
	mark := func(note string) string {
		found = append(found, note)
		return "\x01" + strconv.Itoa(len(found)-1) + "\x01"
	}
	if strings.HasPrefix(strings.TrimSpace(s), "{") && json.Valid([]byte(s)) {
		if !json.Valid([]byte(a)) {
			return "", false
		}
		a = ofString.ReplaceAllStringFunc(a, func(quoted string) string {
			var words string
			if json.Unmarshal([]byte(quoted), &words) != nil || ofAllGroups.FindString(words) != words || words == "" {
				return quoted
			}
			return mark(words)
		})
	} else {
		a = a[:at] + ofAllGroups.ReplaceAllStringFunc(a[at:], mark)
	}
	for k, note := range found {
		left := a
		if c.sent[i].Texts[j].Role == conversation.Tool {
			left = plain(s, a)
		}
		var dropped []int
		place := "\x01" + strconv.Itoa(k) + "\x01"
		var fits func(n int, left string) bool
		fits = func(n int, left string) bool {
			if n == len(list) {
				return left == "" && len(dropped) > 0 && c.named(i, j, dropped, note)
			}
			d := &list[n]
			if text := solid(d.text); strings.HasPrefix(left, text) && fits(n+1, left[len(text):]) {
				return true
			}
			if !d.isDocument { // what parts documents goes with one of them
				return c.form.Mode == extract.Separator && strings.Trim(solid(d.text), "-") == "" && fits(n+1, left)
			}
			behind, ok := left, true
			if len(dropped) == 0 {
				stands := place
				if tag := regexp.MustCompile(`^<(\w+)`).FindStringSubmatch(d.text); tag != nil && !d.own && (c.form.Mode == "" || c.form.Mode == extract.XMLTag) {
					stands = "<" + tag[1] + ">" + place + "</" + tag[1] + ">"
				}
				behind, ok = strings.CutPrefix(left, stands)
			}
			dropped = append(dropped, n)
			if ok && fits(n+1, behind) {
				return true
			}
			dropped = dropped[:len(dropped)-1]
			return false
		}
		if fits(0, solid(left)) {
			return strings.ReplaceAll(a, place, "\x00"), true
		}
	}
	return "", false
}

// candidate is a document that a note may stand for.
type candidate struct{ first, label string }

// named reports whether a note names documents that stand for those that were dropped, each by words that name nothing else.
func (c *checker) named(i, j int, dropped []int, note string) bool {
	var groups [][2]string
	for _, m := range ofDocuments.FindAllStringSubmatch(note, -1) {
		groups = append(groups, [2]string{quoted(m[1]), m[2]})
	}
	list := c.pieces(i, j)
	c.gone[[2]int{i, j}] = slices.Clone(dropped)
	first := make([]bool, len(groups))
	for k := range first {
		first[k] = true
	}
	var fits func(n int) bool
	fits = func(n int) bool {
		if n == len(dropped) {
			for k := range groups {
				if groups[k][0] != "" || first[k] {
					return false
				}
			}
			return true
		}
		for _, can := range c.candidates(i, j, &list[dropped[n]]) {
			for k := range groups {
				if groups[k][1] != can.label {
					continue
				}
				was, wasFirst := groups[k][0], first[k]
				rest := was
				if !wasFirst {
					var ok bool
					if rest, ok = strings.CutPrefix(rest, `", "`); !ok {
						continue
					}
				}
				words := []rune(unfenced(can.first))
				least := 35
				if quoted(note) != note {
					least = 27 // a fence word takes some of the 40 characters
				}
				for n60 := min(60, len(words)); n60 >= min(least, len(words)); n60-- {
					named := string(words[:n60])
					if n60 == len(words) {
						named = unfenced(can.first) // it may be no UTF-8
					}
					behind, ok := strings.CutPrefix(rest, named)
					if !ok || behind != "" && !strings.HasPrefix(behind, `", "`) {
						continue
					}
					groups[k][0], first[k] = behind, false
					if fits(n + 1) {
						return true
					}
					groups[k][0], first[k] = was, wasFirst
				}
			}
		}
		return false
	}
	return fits(0)
}

func (c *checker) candidates(i, j int, d *piece) []candidate {
	var out []candidate
	role := c.sent[i].Texts[j].Role
	c.above(i, j, func(m, n int) {
		x := c.sent[m].Texts[n]
		if x.Role < role {
			return
		}
		as := plain(x.Value, c.arrived[m].Texts[n].Value)
		for _, p := range c.pieces(m, n) {
			can := candidate{p.first, c.labelOf(m, n)}
			if p.isDocument && withoutIDs(p.says) == withoutIDs(d.says) && strings.Contains(as, p.text) && !slices.Contains(out, can) && c.unique(i, j, &p, can.label) {
				out = append(out, can)
			}
		}
	})
	return out
}

// unique reports whether the words that name a document name no other.
func (c *checker) unique(i, j int, d *piece, label string) bool {
	if c.names {
		return true
	}
	same := true
	words := func(text string) string { r := []rune(text); return string(r[:min(len(r), 60)]) }
	look := func(m, n int) {
		if c.sent[m].Texts[n].Role == conversation.System && d.own {
			for r := range markup.Regions(c.sent[m].Texts[n].Value) {
				same = same && (r.Label != d.label || withoutIDs(r.Text) == withoutIDs(d.says))
			}
		}
		for k, p := range c.pieces(m, n) {
			if slices.Contains(c.gone[[2]int{m, n}], k) {
				continue
			}
			if p.isDocument && words(p.first) == words(d.first) && (p.own && d.own || c.labelOf(m, n) == label) && withoutIDs(p.says) != withoutIDs(d.says) {
				same = false
			}
		}
	}
	c.above(i, j, look)
	look(i, j)
	return same
}

// lines returns the lines of a text, or of the member of JSON that has them.
func lines(text string) ([]string, map[string]any) {
	var object map[string]any
	if json.Unmarshal([]byte(text), &object) == nil {
		if content, ok := object["content"].(string); ok {
			delete(object, "content")
			return strings.Split(content, "\n"), object
		}
	}
	return strings.Split(text, "\n"), nil
}

// rows checks a text with notes in place of some of its lines.
func (c *checker) rows(i, j int) (rest string, ok bool) {
	s, a := c.sent[i].Texts[j].Value, c.arrived[i].Texts[j].Value
	was, beside := lines(s)
	now, alsoBeside := lines(a)
	if plain(s, fmt.Sprint(alsoBeside)) != fmt.Sprint(beside) {
		return "", false
	}
	var others []string
	for _, l := range now {
		if ofRows.MatchString(l) {
			l = "a note"
		}
		others = append(others, l)
	}
	var fits func(was, now []string) bool
	fits = func(was, now []string) bool {
		if len(now) == 0 || len(was) == 0 {
			return len(now) == len(was)
		}
		if plain(s, now[0]) == was[0] && fits(was[1:], now[1:]) {
			return true
		}
		note := ofRows.FindStringSubmatch(now[0])
		if note == nil {
			return false
		}
		for n := 1; n <= len(was); n++ {
			if (n == len(was) || len(now) == 1 || ofRows.MatchString(now[1]) || plain(s, now[1]) == was[n]) && c.stand(i, j, was[:n], note) && fits(was[n:], now[1:]) {
				return true
			}
		}
		return false
	}
	return strings.Join(others, "\n"), fits(was, now)
}

// stand reports whether lines stand further up, where a note says. A note of one block says how they begin; a note of several says how
// their last line begins, too, and where both are, all that stands from the one to the other is what was sent.
func (c *checker) stand(i, j int, list, note []string) bool {
	want := strings.TrimSpace(withoutIDs(strings.Join(list, "\n")))
	list = strings.Split(want, "\n")
	found := false
	each := func(do func(there []string)) {
		c.above(i, j, func(m, n int) {
			x := c.sent[m].Texts[n]
			if x.Role < c.sent[i].Texts[j].Role || c.labelOf(m, n) != note[2] {
				return
			}
			there, _ := lines(plain(x.Value, c.arrived[m].Texts[n].Value))
			do(strings.Split(withoutIDs(strings.Join(there, "\n")), "\n"))
		})
	}
	if len(list) <= mostLines && begins(list[0], note[1]) {
		each(func(there []string) { found = found || strings.Contains(strings.Join(there, "\n"), want) })
	}
	for at, to := 0, `" to "`; !found; at += len(to) {
		k := strings.Index(note[1][at:], to)
		if k < 0 {
			break
		}
		at += k
		first, last := note[1][:at], note[1][at+len(to):]
		if !begins(list[0], first) || !begins(list[len(list)-1], last) {
			continue
		}
		others := false
		each(func(there []string) {
			for from := range there {
				if !begins(there[from], first) {
					continue
				}
				k := slices.IndexFunc(there[from+1:], func(line string) bool { return begins(line, first) || begins(line, last) })
				if k < 0 || !begins(there[from+1+k], last) {
					continue
				}
				is := strings.TrimSpace(strings.Join(there[from:from+k+2], "\n")) == want
				found, others = found || is, others || !is
			}
		})
		if found = found && !others; found {
			break
		}
	}
	return found
}

// mostLines is how many lines a block has.
const mostLines = 42

// begins reports whether a line begins with words of a note, and has no more of them if they are few.
func begins(line, words string) bool {
	line, words = string([]rune(strings.TrimSpace(line))), string([]rune(words)) // what is no UTF-8 is not quoted so
	short := utf8.RuneCountInString(words) < 80
	words = strings.TrimSpace(words)
	for _, l := range []string{line, unfenced(line)} {
		for _, w := range []string{words, quoted(words)} {
			if l == w || !short && strings.HasPrefix(l, w) {
				return true
			}
		}
	}
	return false
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
