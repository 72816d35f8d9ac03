package conversationtest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Kind is what became of a document, of rows of lines or of a whole text.
type Kind uint8

// Kinds.
const (
	Lost      Kind = iota // neither sent nor found further up
	Full                  // sent
	Cut                   // sent, but for lines that notes stand for
	Reference             // a note in its place names where it stands
	Noted                 // a note says that it is not sent, but not where it stands
	LeftOut               // not sent, and nothing says so
)

// Part is a document, or some lines, of a text.
type Part struct {
	Label string // of our own markup
	Value string // as it was sent
	Kind  Kind
	// Where it stands in full, if it is not sent here: text Text of message Message. Whole says that it does so in what arrived.
	Message, Text int
	Whole         bool
	named         string // label or call that the note names
	all           []place
}

// place is where a document stands.
type place struct {
	message, text int
	whole         bool // in what arrived, too
}

// Reading is what became of one text.
type Reading struct {
	Message, Text int
	Role          Role
	Same          bool   // every byte
	Parts         []Part // its documents, in the order in which they were sent
	Order         []int  // the documents that arrived, by their numbers in Parts
	All           *Part  // the whole text, if a note stands for it
	Rows          []Part // lines for which notes stand, with the documents that have them Cut
	Fenced        int    // notes of others that were fenced
	Ranked        bool   // a note states a ranking that was not there
	Layout        bool   // what stands around documents is as it was, every byte
	Err           error  // why the text cannot be explained
}

// Report is what became of a conversation.
type Report struct {
	Sent, Arrived []Message
	Readings      []Reading // one for each text, in order

	lined map[[2]int]lined
}

// At returns the reading of a text.
func (r *Report) At(message, text int) *Reading {
	for i := range r.Readings {
		if x := &r.Readings[i]; x.Message == message && x.Text == text {
			return x
		}
	}
	return nil
}

// Read compares messages as they were sent with those that arrived. An error says that they are not the same messages; what cannot be
// explained in a text is that text's Err.
func Read(sent, arrived []Message) (*Report, error) {
	if len(sent) != len(arrived) {
		return nil, fmt.Errorf("%d messages arrived of %d", len(arrived), len(sent))
	}
	r := &Report{Sent: sent, Arrived: arrived}
	for i := range sent {
		s, a := &sent[i], &arrived[i]
		if s.Role != a.Role || len(s.Texts) != len(a.Texts) || !slices.Equal(s.Calls, a.Calls) {
			return nil, fmt.Errorf("message %d: another role, other calls or another number of texts arrived", i)
		}
		for j := range s.Texts {
			if s.role(j) != a.role(j) || s.Texts[j].Call != a.Texts[j].Call {
				return nil, fmt.Errorf("message %d, text %d: another role or call arrived", i, j)
			}
			x := Reading{Message: i, Text: j, Role: s.role(j)}
			r.read(&x, s.Texts[j].Value, a.Texts[j].Value)
			r.Readings = append(r.Readings, x)
		}
	}
	return r, nil
}

// read explains one text by those above.
func (r *Report) read(x *Reading, sent, arrived string) {
	form, docs := documentsOf(sent)
	for _, d := range docs {
		x.Parts = append(x.Parts, Part{Label: d.label, Value: d.text})
	}
	x.Same = sent == arrived
	arrived, x.Fenced = unfenced(sent, arrived)
	switch found := notesIn(arrived); {
	case sent == arrived: // but for fences
		x.Layout = true
		for i := range x.Parts {
			x.Parts[i].Kind = Full
			x.Order = append(x.Order, i)
		}
	case len(found) == 1 && found[0].kind == repeatsResult && found[0].to-found[0].from == len(strings.TrimSpace(arrived)):
		x.All = &Part{Value: sent, named: found[0].names}
		r.whole(x, x.All)
	case form == own:
		r.blocks(x, sent, arrived, docs)
	case form != none && !slices.ContainsFunc(found, func(n note) bool { return n.kind == repeatsRows }):
		r.foreign(x, sent, arrived, form, docs)
	default:
		r.rows(x, sent, arrived)
	}
}

// eachAbove calls do for the texts above a text, from the first on, until it returns false.
func (r *Report) eachAbove(x *Reading, do func(message, text int) bool) {
	for i := range r.Sent {
		for j := range r.Sent[i].Texts {
			if i == x.Message && j == x.Text || !do(i, j) {
				return
			}
		}
	}
}

// whole looks for the result that a note about a whole one names.
func (r *Report) whole(x *Reading, p *Part) {
	r.eachAbove(x, func(i, j int) bool {
		t := r.Sent[i].Texts[j]
		hashed := strings.HasPrefix(p.named, "~") && t.Call != ""
		if (t.Call == p.named || hashed) && compared(t.Value) == compared(p.Value) {
			p.Kind, p.Message, p.Text = Reference, i, j
			arrived, _ := unfenced(t.Value, r.Arrived[i].Texts[j].Value)
			p.Whole = arrived == t.Value
		}
		return p.Kind != Reference || !p.Whole
	})
}

// blocks explains a text with blocks of our own.
func (r *Report) blocks(x *Reading, sent, arrived string, docs []doc) {
	there := ownBlocks(arrived)
	x.matched(there, func(p *Part, d doc) bool { return p.Label == d.label && p.Value == d.text })
	rest := blank(arrived, there)
	for i := range x.Parts {
		p := &x.Parts[i]
		if p.Kind == Full {
			continue
		}
		r.findDocument(x, p)
		r.findNoted(p, notesIn(rest))
		for _, n := range notesIn(rest) {
			if n.kind != refersToBlock || p.Kind == Reference {
				continue
			}
			if r.findLabel(x, p, n.names) {
				rest = rest[:n.from] + rest[n.to:]
				break
			}
		}
	}
	was, before := without(statesRanking, blank(sent, docs))
	rest, _ = without(repeatsDocuments, rest)
	now, ranked := without(statesRanking, rest)
	x.Ranked = ranked && !before
	if x.Err == nil && squeezed(was) != squeezed(now) {
		x.Err = fmt.Errorf("beside its blocks the text said %q, and now %q", squeezed(was), squeezed(now))
	}
}

// blank returns a text with a line feed in place of each document.
func blank(text string, docs []doc) string {
	for _, d := range slices.Backward(docs) {
		text = text[:d.from] + "\n" + text[d.to:]
	}
	return text
}

// without returns a text without the notes of a kind, and whether there were any.
func without(kind noteKind, text string) (rest string, found bool) {
	for _, n := range slices.Backward(notesIn(text)) {
		if n.kind == kind {
			text, found = text[:n.from]+text[n.to:], true
		}
	}
	return text, found
}

func squeezed(text string) string { return strings.Join(strings.Fields(text), " ") }

// matched finds the documents that arrived among those that were sent.
func (x *Reading) matched(there []doc, same func(p *Part, d doc) bool) {
	for _, d := range there {
		i := slices.IndexFunc(x.Parts, func(p Part) bool { return p.Kind != Full && same(&p, d) })
		if i < 0 {
			x.Err = fmt.Errorf("a document arrived that was not sent, or not so often: %.80q", d.text)
			return
		}
		x.Parts[i].Kind = Full
		x.Order = append(x.Order, i)
	}
}

// findDocument looks for a document that is not sent further up, and takes it for left out if it was sent there.
func (r *Report) findDocument(x *Reading, p *Part) {
	has := func(text string) bool {
		_, there := documentsOf(text)
		return slices.ContainsFunc(there, func(d doc) bool {
			text, _ := unfenced(p.Value, d.text)
			return compared(text) == compared(p.Value)
		})
	}
	r.eachAbove(x, func(i, j int) bool {
		if has(r.Sent[i].Texts[j].Value) {
			p.Kind, p.Message, p.Text, p.Whole = LeftOut, i, j, has(r.Arrived[i].Texts[j].Value)
			p.all = append(p.all, place{i, j, p.Whole})
		}
		return true
	})
	for _, at := range p.all { // the first that stands whole, if no note says which
		if p.Message, p.Text, p.Whole = at.message, at.text, at.whole; at.whole {
			return
		}
	}
}

// findLabel looks for the block that a note names, and takes it for the document's place if it says the same.
func (r *Report) findLabel(x *Reading, p *Part, label string) bool {
	found := false
	r.eachAbove(x, func(i, j int) bool {
		for _, d := range ownBlocks(r.Arrived[i].Texts[j].Value) {
			if d.label == label && d.text == p.Value {
				p.Kind, p.Message, p.Text, p.Whole, p.named = Reference, i, j, true, label
				found = true
				return false
			}
		}
		return true
	})
	return found
}

// findNoted takes a document that is left out for referred to if a note names it, and where it stands.
func (r *Report) findNoted(p *Part, list []note) {
	for _, n := range list {
		for _, at := range p.all {
			if n.kind == repeatsDocuments && p.Kind == LeftOut && r.lines(at.message, at.text).of == n.names {
				r.findNotedAt(p, n, at)
			}
		}
	}
}

// findNotedAt does so for one of the texts in which it stands.
func (r *Report) findNotedAt(p *Part, n note, at place) {
	if there := ownBlocks(r.Sent[at.message].Texts[at.text].Value); at.whole {
		for first := range strings.SplitSeq(n.first, `", "`) {
			labelled := slices.ContainsFunc(there, func(d doc) bool { return first == "["+d.label+"]" && d.text == p.Value })
			solid := func(text string) string { return strings.Join(strings.Fields(text), "") }
			if labelled || strings.HasPrefix(p.Value, first) || strings.HasPrefix(p.Value, "{") && strings.Contains(solid(p.Value), solid(first)) {
				p.Kind, p.named, p.Message, p.Text, p.Whole = Reference, n.names, at.message, at.text, true
			}
		}
	}
}

// foreign explains a text whose documents are marked otherwise.
func (r *Report) foreign(x *Reading, sent, arrived string, form form, docs []doc) {
	arrived = withoutEcho(arrived, docs)
	there := find(form, arrived)
	everything := false // a note stands for all documents, and names none
	if len(there) == 1 {
		if list := notesIn(there[0].text); len(list) == 1 && list[0].kind == repeatsAll {
			everything, there = true, nil
		}
	}
	var noted []note
	all := there
	there = slices.DeleteFunc(slices.Clone(there), func(d doc) bool {
		text := d.text
		if form == results {
			_ = json.Unmarshal([]byte(d.text), &text)
		}
		if rest, _ := without(repeatsDocuments, text); strings.TrimSpace(rest) != "" {
			return false
		}
		noted = append(noted, notesIn(text)...)
		return true
	})
	x.matched(there, func(p *Part, d doc) bool { return compared(p.Value) == compared(d.text) })
	for i := range x.Parts {
		p := &x.Parts[i]
		if p.Kind == Full {
			continue
		}
		if r.findDocument(x, p); everything && p.Kind == LeftOut {
			p.Kind = Noted
		}
		r.findNoted(p, noted)
	}
	if x.Err != nil || everything {
		return
	}
	was, now := around(sent, docs), around(arrived, all)
	x.Layout = was == now
	if !x.Layout && strings.Join(strings.Fields(was), "") != strings.Join(strings.Fields(now), "") {
		x.Err = fmt.Errorf("around its documents the text said %.80q, and now %.80q", was, now)
	}
}

// find finds documents of a form, also if there is one only.
func find(f form, text string) []doc {
	if f == results {
		return jsonResults(text)
	}
	docs, _ := elementsIn(text)
	return docs
}

// rows explains a text of which notes stand for some lines.
func (r *Report) rows(x *Reading, sent, arrived string) {
	if !r.align(x, strings.Split(sent, "\n"), strings.Split(arrived, "\n")) {
		x.Err = fmt.Errorf("%.80q… became %.80q…", sent, arrived)
		return
	}
	for i := range x.Parts {
		p := &x.Parts[i]
		if p.Kind = Cut; strings.Contains(arrived, p.Value) {
			p.Kind = Full
		}
		x.Order = append(x.Order, i)
	}
}

// align explains lines by those that arrived, from the front: a note stands for some of them, any other line for itself.
func (r *Report) align(x *Reading, lines, left []string) bool {
	for len(left) > 0 && len(lines) > 0 && left[0] == lines[0] {
		lines, left = lines[1:], left[1:]
	}
	if len(left) == 0 || len(lines) == 0 {
		return len(left) == len(lines)
	}
	found := notesIn(left[0])
	if len(found) != 1 || found[0].kind != repeatsRows || found[0].to-found[0].from != len(left[0]) {
		return false
	}
	var next []note
	if len(left) > 1 {
		next = notesIn(left[1])
	}
	for n := len(lines); n > 0; n-- {
		var ends bool
		switch {
		case len(left) == 1 || n == len(lines):
			ends = len(left) == 1 && n == len(lines)
		case len(next) > 0:
			ends = next[0].begins(lines[n])
		default:
			ends = lines[n] == left[1]
		}
		p := Part{Value: strings.Join(lines[:n], "\n"), named: found[0].names}
		if !ends || !found[0].stands(lines[:n]) || !r.findRows(x, &p) {
			continue
		}
		x.Rows = append(x.Rows, p)
		if r.align(x, lines[n:], left[1:]) {
			return true
		}
		x.Rows = x.Rows[:len(x.Rows)-1]
	}
	return false
}

// findRows looks for lines further up, in a text of whom the note names.
func (r *Report) findRows(x *Reading, p *Part) bool {
	want := asLines(p.Value)
	r.eachAbove(x, func(i, j int) bool {
		if t := r.lines(i, j); t.of == p.named && strings.Contains(t.sent, want) {
			p.Kind, p.Message, p.Text, p.Whole = Reference, i, j, strings.Contains(t.arrived, want)
		}
		return !p.Whole
	})
	return p.Kind == Reference
}

// lined is a text whose lines notes may name.
type lined struct{ of, sent, arrived string }

// lines returns a text as its lines are compared.
func (r *Report) lines(message, text int) lined {
	at := [2]int{message, text}
	if l, ok := r.lined[at]; ok {
		return l
	}
	m := &r.Sent[message]
	value := m.Texts[text].Value
	arrived, _ := unfenced(value, r.Arrived[message].Texts[text].Value)
	l := lined{sent: asLines(value), arrived: asLines(arrived)}
	switch m.role(text) {
	case System:
		l.of = "system prompt"
	case User:
		l.of = "user message"
	case Assistant:
		l.of = "assistant message"
	case Tool:
		l.of = "tool"
		for _, above := range r.Sent[:message] {
			for _, c := range above.Calls {
				if c.ID == m.Texts[text].Call {
					l.of = c.Tool
				}
			}
		}
	}
	if r.lined == nil {
		r.lined = map[[2]int]lined{}
	}
	r.lined[at] = l
	return l
}

var lineNumber = regexp.MustCompile(`(?m)^[ \t]*[0-9]+\|`)

// asLines returns a text without the numbers of its lines, each of which ends with a line feed.
func asLines(text string) string {
	return "\n" + compared(lineNumber.ReplaceAllString(text, "")) + "\n"
}
