package stabilise

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ragpilot/ragpilot/internal/prompt/extract"
	"github.com/ragpilot/ragpilot/internal/prompt/volatile"
)

// finder takes pieces out of the system texts of one request.
type finder struct {
	s     *Stabiliser
	form  extract.Options
	slots map[string]int // how many pieces of a kind were taken
	kept  int64
	// Of volatile lines and of memories.
	lines, memories int64
	out             []piece
}

// add notes a piece.
func (f *finder) add(kind, text string, clock bool) {
	f.out = append(f.out, piece{slot: fmt.Sprintf("%s#%d", kind, f.slots[kind]), text: text, clock: clock})
	f.slots[kind]++
}

// take returns a system text without what leaves it.
func (f *finder) take(text string) string {
	if f.s.cfg.Memories {
		text = f.takeMemories(text)
	}
	if f.s.cfg.Volatile {
		text = f.takeLines(text)
	}
	return text
}

// guarded returns a function that reports whether a place may be in a document, whose author is not the system's.
func (f *finder) guarded(text string) func(at int) bool {
	var inside func(int) bool
	return func(at int) bool {
		if inside == nil {
			inside = guard(text, f.form)
		}
		return inside(at)
	}
}

// guard reads a system text for [finder.guarded].
func guard(text string, form extract.Options) func(at int) bool {
	if found, ok := extract.Find(text, form); ok {
		return found.Inside
	}
	mark := extract.Mark(text)
	return func(at int) bool { return mark >= 0 && at >= mark }
}

// cut is a range of a text that leaves it.
type cut struct{ from, to int }

// without returns a text without ranges that rise.
func without(text string, cuts []cut) string {
	if len(cuts) == 0 {
		return text
	}
	var b strings.Builder
	at := 0
	for _, c := range cuts {
		b.WriteString(text[at:c.from])
		at = c.to
	}
	b.WriteString(text[at:])
	return b.String()
}

// lineAt returns the line that begins at a byte, without its line feed, and where the next one begins.
func lineAt(text string, at int) (line string, next int) {
	if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
		return text[at : at+i], at + i + 1
	}
	return text[at:], len(text)
}

// marker says where memories begin.
type marker struct {
	name string // in lower case
	kind byte   // '<': a tag, '#': a heading, ':': a label
}

func parseMarker(text string) (m marker, err error) {
	name := strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(name, "<") && strings.HasSuffix(name, ">"):
		m = marker{strings.Trim(name, "<>"), '<'}
		if strings.ContainsFunc(m.name, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.:", r)
		}) {
			return m, errors.New("the name of a tag has letters, digits and _ - . : only")
		}
	case strings.HasPrefix(name, "#"):
		m = marker{strings.TrimSpace(strings.TrimLeft(name, "#")), '#'}
	case strings.HasSuffix(name, ":"):
		m = marker{strings.TrimSpace(strings.TrimSuffix(name, ":")), ':'}
	default:
		return m, errors.New("want <name>, ## Name or Name")
	}
	if m.name == "" || strings.Contains(m.name, "\n") {
		return m, errors.New("it has no name on one line")
	}
	m.name = strings.ToLower(m.name)
	return m, nil
}

// takeMemories takes sections with memories out of a text.
func (f *finder) takeMemories(text string) string {
	guarded := f.guarded(text)
	var cuts []cut
	for at := 0; at < len(text); {
		line, next := lineAt(text, at)
		to := 0
		for i := range f.s.markers {
			if to = f.s.markers[i].section(text, line, next, at); to > 0 {
				if guarded(at) {
					f.kept++
					to = 0
					break
				}
				cuts = append(cuts, cut{at, to})
				f.add("memories "+f.s.markers[i].name, strings.TrimSpace(text[at:to]), false)
				f.memories++
				break
			}
		}
		at = max(next, to)
	}
	return without(text, cuts)
}

// section returns where the section ends that begins with a line, 0 if none does. next is where the next line begins, from the line itself.
func (m *marker) section(text, line string, next, from int) int {
	body := strings.TrimSpace(line)
	switch m.kind {
	case '<':
		return m.tagged(text, body, from)
	case '#':
		title := strings.TrimLeft(body, "#")
		if level := len(body) - len(title); level > 0 && m.is(title) {
			return sectionEnd(text, next, level, false)
		}
	case ':':
		if strings.HasSuffix(body, ":") && m.is(body) {
			for next < len(text) { // empty lines behind the label
				line, behind := lineAt(text, next)
				if strings.TrimSpace(line) != "" {
					break
				}
				next = behind
			}
			return sectionEnd(text, next, 6, true)
		}
	}
	return 0
}

func (m *marker) is(title string) bool {
	return strings.ToLower(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(title), ":"))) == m.name
}

// tagged returns the end of the element that begins with a line, its line feed included.
func (m *marker) tagged(text, body string, from int) int {
	if len(body) < len(m.name)+2 || body[0] != '<' || !strings.EqualFold(body[1:1+len(m.name)], m.name) {
		return 0
	}
	if c := body[1+len(m.name)]; c != '>' && c != ' ' {
		return 0
	}
	end := indexFold(text[from:], "</"+m.name+">")
	if end < 0 {
		return 0
	}
	to := from + end + len(m.name) + 3
	if line, next := lineAt(text, to); strings.TrimSpace(line) == "" {
		return next
	}
	return to
}

// indexFold is strings.Index for ASCII letters of any case.
func indexFold(text, part string) int {
	for at := 0; ; at++ {
		i := strings.Index(text[at:], part[:2])
		if i < 0 {
			return -1
		}
		at += i
		if len(text)-at >= len(part) && strings.EqualFold(text[at:at+len(part)], part) {
			return at
		}
	}
}

// sectionEnd returns where a section ends: at a heading of its level or above, at a line that begins with a tag, and at an empty line if it
// is only a paragraph.
func sectionEnd(text string, at, level int, paragraph bool) int {
	for at < len(text) {
		line, next := lineAt(text, at)
		body := strings.TrimSpace(line)
		if n := len(body) - len(strings.TrimLeft(body, "#")); n > 0 && n <= level || strings.HasPrefix(body, "<") || paragraph && body == "" {
			break
		}
		at = next
	}
	return at
}

// takeLines takes lines out that a pattern matches, and sentences that say what time it is.
func (f *finder) takeLines(text string) string {
	guarded := f.guarded(text)
	var cuts []cut
	fenced := false // in a block of code
	for at := 0; at < len(text); {
		line, next := lineAt(text, at)
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		kind, units := f.units(line, fenced)
		for _, u := range units {
			if guarded(at + u.from) {
				f.kept++
				continue
			}
			c := cut{at + u.from, at + u.to}
			if strings.TrimSpace(line[:u.from]+line[u.to:]) == "" {
				c = cut{at, next}
			}
			cuts = append(cuts, c)
			f.add(kind, strings.TrimSpace(line[u.from:u.to]), kind == "clock")
			f.lines++
		}
		at = next
	}
	return without(text, cuts)
}

// units returns what of a line is moved, and why.
func (f *finder) units(line string, fenced bool) (kind string, out []cut) {
	for i, p := range f.s.patterns {
		if strings.TrimSpace(line) != "" && p.MatchString(line) {
			return fmt.Sprintf("pattern %d", i), []cut{{0, len(line)}}
		}
	}
	if fenced {
		return "", nil
	}
	return "clock", clocks(line)
}

// present are words by which a text says that a time is the present one.
var present = regexp.MustCompile(`(?i)\bcurrent|\bnow\b|\btoday|\b(local|system|server|present|user'?s?) (date|time)|\bit is\b|` +
	`^\W*(date|time|date and time|datetime|timestamp|clock|datum|uhrzeit|zeit|fecha|hora|heure|data|ora|tijd)\s*[:=]|` +
	`\bheute|\bjetzt\b|\baktuell|\bderzeit|\baujourd'hui|\bactuelle?|\bmaintenant|\bhoy\b|\bahora\b|(fecha|hora) actual|\boggi\b|\badesso\b|` +
	`\battuale|\bhoje\b|\bagora\b|\batual\b|\bvandaag\b|\bhuidige|今天|今日|当前|當前|现在|現在|오늘|현재`)

// maxWords is how many words a sentence has at most beside the time that it says: longer ones say something else.
const maxWords = 12

// clocks returns the sentences of a line that say what time it is.
func clocks(line string) []cut {
	body := strings.TrimSpace(line)
	if body == "" || !present.MatchString(line) || strings.HasPrefix(body, `"`) || strings.ContainsAny(body, "{}") || !wholeTags(body) {
		return nil
	}
	var spans []volatile.Span
	for _, s := range volatile.Find(line) {
		if s.Kind == volatile.Clock {
			spans = append(spans, s)
		}
	}
	if len(spans) == 0 {
		return nil
	}
	var out []cut
	for _, s := range sentences(line, spans) {
		words := len(strings.FieldsFunc(line[s.from:s.to], func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' }))
		has := false
		for _, c := range spans {
			if c.From >= s.from && c.To <= s.to {
				has = true
				words -= len(strings.FieldsFunc(line[c.From:c.To], func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }))
			}
		}
		if has && words <= maxWords && present.MatchString(line[s.from:s.to]) {
			out = append(out, s)
		}
	}
	return out
}

// wholeTags reports whether a line has no tag, or is one element: <now>…</now>.
func wholeTags(body string) bool {
	if !strings.Contains(body, "<") {
		return true
	}
	if body[0] != '<' || strings.Count(body, "<") != 2 {
		return false
	}
	name, _, _ := strings.Cut(body[1:], ">")
	name, _, _ = strings.Cut(name, " ")
	return name != "" && strings.HasSuffix(body, "</"+name+">")
}

// sentences cuts a line behind a full stop that a space and something else than a small letter or a digit follow, but not inside a time.
// The space belongs to the sentence in front of it.
func sentences(line string, spans []volatile.Span) []cut {
	var out []cut
	from := 0
	for i := 0; i+2 < len(line); i++ {
		if !strings.ContainsRune(".!?", rune(line[i])) || line[i+1] != ' ' {
			continue
		}
		if r, _ := utf8.DecodeRuneInString(line[i+2:]); unicode.IsLower(r) || r == ' ' || unicode.IsDigit(r) {
			continue
		}
		inside := false
		for _, s := range spans {
			inside = inside || i >= s.From && i+1 < s.To
		}
		if !inside {
			out = append(out, cut{from, i + 2})
			from = i + 2
		}
	}
	return append(out, cut{from, len(line)})
}
