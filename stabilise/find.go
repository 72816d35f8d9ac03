package stabilise

import (
	"errors"
	"fmt"
	"slices"
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

// guard knows what of a system text may be a document, whose author is not the system's.
type guard struct {
	found extract.Found
	sure  bool
	mark  int // where the first may begin, if it is not sure; -1: nowhere
}

func newGuard(text string, form extract.Options) *guard {
	g := &guard{}
	if g.found, g.sure = extract.Find(text, form); !g.sure {
		g.mark = extract.Mark(text)
	}
	return g
}

// has reports whether a part of a range may be in a document.
func (g *guard) has(from, to int) bool {
	if g.sure {
		return g.found.Overlaps(from, to)
	}
	return g.mark >= 0 && g.mark < to
}

// behind reports whether a place is in a document, or where one may be.
func (g *guard) behind(at int) bool {
	if g.sure {
		return g.found.Inside(at)
	}
	return g.mark >= 0 && at >= g.mark
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
		return m, errors.New("want <name>, ## Name or Name: as a marker")
	}
	if m.name == "" || strings.Contains(m.name, "\n") {
		return m, errors.New("it has no name on one line")
	}
	m.name = strings.ToLower(m.name)
	return m, nil
}

// takeMemories takes sections with memories out of a text.
func (f *finder) takeMemories(text string) string {
	var g *guard
	var cuts []cut
	var ends tagEnds
	for at := 0; at < len(text); {
		line, next := lineAt(text, at)
		m, level := f.begins(strings.TrimSpace(line))
		if m == nil {
			at = next
			continue
		}
		if g == nil {
			g = newGuard(text, f.form)
		}
		to := 0
		if !g.has(at, at+len(line)) || m.kind == '<' && !g.behind(at+1) {
			to = m.section(text, at, next, level, &ends)
		}
		switch {
		case to == 0, m.kind != '<' && g.has(at, to), m.kind == '<' && g.sure && g.behind(to-1):
			f.kept++
			to = next
		default:
			cuts = append(cuts, cut{at, to})
			f.add("memories "+m.name, strings.TrimSpace(text[at:to]), false)
			f.memories++
		}
		at = to
	}
	return without(text, cuts)
}

// begins returns the marker that a line is, and the level of a heading; nil: none.
func (f *finder) begins(body string) (m *marker, level int) {
	for i := range f.s.markers {
		m := &f.s.markers[i]
		switch m.kind {
		case '<':
			if m.opens(body) {
				return m, 0
			}
		case '#':
			title := strings.TrimLeft(body, "#")
			if level := len(body) - len(title); level > 0 && m.is(title) {
				return m, level
			}
		case ':':
			if strings.HasSuffix(body, ":") && m.is(body) {
				return m, 0
			}
		}
	}
	return nil, 0
}

// section returns where the section ends that begins at a byte, 0 if it does not. next is where the next line begins.
func (m *marker) section(text string, at, next, level int, ends *tagEnds) int {
	switch m.kind {
	case '<':
		to := ends.of(text, m.name, at)
		if to == 0 {
			return 0
		}
		if line, next := lineAt(text, to); strings.TrimSpace(line) == "" {
			return next
		}
		return to
	case '#':
		return sectionEnd(text, next, level, false)
	}
	for next < len(text) { // empty lines behind the label
		line, behind := lineAt(text, next)
		if strings.TrimSpace(line) != "" {
			break
		}
		next = behind
	}
	return sectionEnd(text, next, 6, true)
}

func (m *marker) is(title string) bool {
	return strings.ToLower(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(title), ":"))) == m.name
}

// opens reports whether a line begins with the tag.
func (m *marker) opens(body string) bool {
	if len(body) < len(m.name)+2 || body[0] != '<' || !strings.EqualFold(body[1:1+len(m.name)], m.name) {
		return false
	}
	c := body[1+len(m.name)]
	return c == '>' || c == ' '
}

// tagEnds remembers where elements of a text end: a text may have many tags that open one, and no end far away.
type tagEnds map[string]int

// of returns where the element ends that begins at a byte, behind its closing tag; 0: nowhere.
func (e *tagEnds) of(text, name string, at int) int {
	if *e == nil {
		*e = tagEnds{}
	}
	if to, ok := (*e)[name]; ok && (to == 0 || to > at) {
		return to
	}
	to := indexFold(text[at:], "</"+name+">")
	if to >= 0 {
		to += at + len(name) + 3
	}
	(*e)[name] = max(to, 0)
	return max(to, 0)
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
	var g *guard
	spans := slices.DeleteFunc(volatile.Find(text), func(s volatile.Span) bool { return s.Kind != volatile.Clock })
	var cuts []cut
	fenced := false // in a block of code
	for at := 0; at < len(text); {
		line, next := lineAt(text, at)
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		n := 0
		for n < len(spans) && spans[n].From < at+len(line) {
			n++
		}
		kind, units := f.units(text, cut{at, at + len(line)}, spans[:n], fenced)
		spans = spans[n:]
		for _, u := range units {
			if g == nil {
				g = newGuard(text, f.form)
			}
			if g.has(u.from, u.to) {
				f.kept++
				continue
			}
			c := u
			if len(units) == 1 && strings.TrimSpace(text[at:u.from]) == "" && strings.TrimSpace(text[u.to:at+len(line)]) == "" {
				c = cut{at, next}
			}
			cuts = append(cuts, c)
			f.add(kind, strings.TrimSpace(text[u.from:u.to]), kind == "clock")
			f.lines++
		}
		at = next
	}
	return without(text, cuts)
}

// units returns what of a line is moved, and why.
func (f *finder) units(text string, line cut, spans []volatile.Span, fenced bool) (kind string, out []cut) {
	body := text[line.from:line.to]
	for i, p := range f.s.patterns {
		if strings.TrimSpace(body) != "" && p.MatchString(body) {
			return fmt.Sprintf("pattern %d", i), []cut{line}
		}
	}
	if fenced || len(spans) == 0 {
		return "", nil
	}
	return "clock", clocks(text, line, spans)
}

// maxWords is how many words a sentence has at most beside the time that it says: longer ones say something else.
const maxWords = 12

// clocks returns the sentences of a line that say what time it is.
func clocks(text string, line cut, spans []volatile.Span) (out []cut) {
	body := strings.TrimSpace(text[line.from:line.to])
	if strings.HasPrefix(body, `"`) || strings.ContainsAny(body, "{}") || !wholeTags(body) {
		return nil
	}
	for _, s := range sentences(text, line, spans) {
		n := 0
		for n < len(spans) && spans[n].From < s.to {
			n++
		}
		if n == 0 {
			continue
		}
		words, at := 0, s.from
		for _, c := range spans[:n] {
			words += countWords(text[at:c.From], maxWords+1-words)
			at = c.To
		}
		words += countWords(text[at:max(at, s.to)], maxWords+1-words)
		if spans = spans[n:]; words <= maxWords && saysNow(text[s.from:s.to]) {
			out = append(out, s)
		}
	}
	return out
}

// countWords counts words, up to a number.
func countWords(text string, most int) (n int) {
	for range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' }) {
		if n++; n >= most {
			break
		}
	}
	return n
}

// Words by which a text says that a time is the present one. A space stands for what is no letter.
var (
	presentWords = []string{
		" current", " now ", " today", " local time ", " local date ", " system time ", " system date ", " server time ", " server date ",
		" present time ", " present date ", " user s time ", " user s date ", " it is ", " heute", " jetzt ", " aktuell", " derzeit",
		" aujourd hui", " actuelle", " maintenant ", " hoy ", " ahora ", " fecha actual ", " hora actual ", " oggi ", " adesso ", " attuale",
		" hoje ", " agora ", " atual ", " vandaag ", " huidige",
	}
	presentSigns  = []string{"今天", "今日", "当前", "當前", "现在", "現在", "오늘", "현재"}
	presentLabels = map[string]bool{
		"date": true, "time": true, "date and time": true, "datetime": true, "timestamp": true, "clock": true, "datum": true, "uhrzeit": true,
		"zeit": true, "fecha": true, "hora": true, "heure": true, "data": true, "ora": true, "tijd": true,
	}
)

// saysNow reports whether a sentence says that a time is the present one.
func saysNow(sentence string) bool {
	low := strings.ToLower(sentence)
	label, _, found := strings.Cut(strings.TrimLeftFunc(low, func(r rune) bool { return !unicode.IsLetter(r) }), ":")
	if !found {
		label, _, found = strings.Cut(label, "=")
	}
	if found && presentLabels[strings.Trim(label, " *_`")] {
		return true
	}
	words := " " + strings.Join(strings.FieldsFunc(low, func(r rune) bool { return !unicode.IsLetter(r) }), " ") + " "
	return slices.ContainsFunc(presentWords, func(w string) bool { return strings.Contains(words, w) }) ||
		slices.ContainsFunc(presentSigns, func(w string) bool { return strings.Contains(low, w) })
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
func sentences(text string, line cut, spans []volatile.Span) []cut {
	var out []cut
	from := line.from
	for i := line.from; i+2 < line.to; i++ {
		if c := text[i]; c != '.' && c != '!' && c != '?' || text[i+1] != ' ' {
			continue
		}
		if r, _ := utf8.DecodeRuneInString(text[i+2:]); unicode.IsLower(r) || r == ' ' || unicode.IsDigit(r) {
			continue
		}
		for len(spans) > 0 && spans[0].To <= i+1 {
			spans = spans[1:]
		}
		if len(spans) == 0 || i < spans[0].From {
			out = append(out, cut{from, i + 2})
			from = i + 2
		}
	}
	return append(out, cut{from, line.to})
}
