package conversation

import (
	"regexp"
	"sort"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/internal/prompt/extract"
	"github.com/ragpilot/ragpilot/internal/prompt/markup"
	"github.com/ragpilot/ragpilot/internal/prompt/notes"
	"github.com/ragpilot/ragpilot/internal/prompt/repeat"
)

// Numbers of what is no document of a text.
const (
	whole    = -1 // all of it
	nameOnly = -2 // what is no target itself, but bears a name
)

// shown is a document that stands in full in a message as it is sent.
type shown struct {
	content   content
	name      content // what a note would name it by
	text, doc int32   // its text in the message, and its number in there
}

// target is a document that a note may stand for.
type target struct {
	shown
	message int
	role    Role
}

// visible is what of the conversation so far may be referred to: the only answer to the question whether a text is still there. It is
// made of the messages of this request alone.
type visible struct {
	at    map[content]target  // the first of the highest trust
	named map[content]content // what a name stands for; zero: for more than one text. Nil: names do not count
}

func newVisible(size int, recorded bool) *visible {
	v := &visible{at: make(map[content]target, size)}
	if !recorded {
		v.named = make(map[content]content, size)
	}
	return v
}

// add enters a document behind all that were entered before.
func (v *visible) add(t target) {
	if v.named != nil {
		if other, ok := v.named[t.name]; ok && other != t.content {
			v.named[t.name] = content{}
		} else {
			v.named[t.name] = t.content
		}
	}
	if t.doc == nameOnly {
		return
	}
	if there, ok := v.at[t.content]; !ok || t.role > there.role {
		v.at[t.content] = t
	}
}

// found are the documents of a text: blocks in our own markup, else in a foreign form.
type found struct {
	docs []extract.Doc
	own  []markup.Region
	text string
	extract.Found
}

// ownBlocks returns the blocks of a text in our own markup.
func ownBlocks(text string) (f found, ok bool) {
	for r := range markup.Regions(text) {
		f.own = append(f.own, r)
		f.docs = append(f.docs, extract.Doc{Key: r.Text, Text: r.Text})
	}
	f.text = text
	return f, len(f.own) > 0 && len(f.own) <= MaxDocuments
}

// hasEcho reports whether a text has an echo of a block in our own markup.
func hasEcho(text string) bool {
	for r := range markup.All(text) {
		if r.Echo {
			return true
		}
	}
	return false
}

// documents returns the documents of a text that are looked at. JSON is not laid out anew unless the client has asked for the form.
func (x *request) documents(tx *Text) (f found, ok bool) {
	switch {
	case tx.Opaque, tx.Role == System && !x.c.Look.System && !tx.Fixed, tx.Role == Tool && !x.c.Look.Tools, tx.Role == Other:
		return f, false
	}
	if tx.Role != System && !x.c.Recorded {
		if f, ok = ownBlocks(tx.Value); ok {
			return f, true
		}
	}
	if tx.Role == User || tx.Role == Assistant {
		return f, false
	}
	form := x.c.Look.Form
	f.text = tx.Value
	f.Found, ok = extract.Find(tx.Value, form)
	if f.Mode == extract.JSONResults && form.Mode != extract.JSONResults {
		f.Found = f.AsWritten()
	}
	f.docs = f.Docs
	return f, ok && len(f.docs) >= 2 && len(f.docs) <= MaxDocuments
}

// span returns where document i stands, with all that goes with it.
func (f *found) span(i int) (from, to int) {
	if f.own != nil {
		return f.own[i].Start, f.own[i].End
	}
	return f.Span(i)
}

// cut reports whether some of document i is in ranges of the text, which are in its order.
func (f *found) cut(i int, ranges [][2]int) bool {
	if len(ranges) == 0 {
		return false
	}
	from, to := f.span(i)
	at := sort.Search(len(ranges), func(k int) bool { return ranges[k][1] > from })
	return at < len(ranges) && ranges[at][0] < to
}

// counted are attributes that say no more than a number, such as a place in a list.
var counted = regexp.MustCompile(`[\w:.-]+\s*=\s*(?:"[0-9]*"|'[0-9]*'|[0-9]+)`)

// says returns what document i says: its text, and the attributes of its tag, such as the file that it is.
func (f *found) says(i int) string {
	text := f.docs[i].Text
	if f.own != nil || f.Mode != extract.XMLTag {
		return text
	}
	tag, _, _ := strings.Cut(f.Item(i), ">")
	at := strings.IndexAny(tag, " \t\r\n\v\f")
	if at < 0 {
		return text
	}
	if attributes := strings.TrimSpace(counted.ReplaceAllString(tag[at:], "")); attributes != "" {
		return text + "\x00" + attributes
	}
	return text
}

// firstWords is the length in characters up to which a note names a document by its first line.
const firstWords = 40

// first returns the words by which a note names document i: its address, its label or its first line.
func (f *found) first(i int) string {
	words := f.docs[i].Text
	switch {
	case f.own != nil:
		return bracketed(f.own[i].Label)
	case f.Mode == extract.JSONResults:
		words = f.docs[i].Key
	}
	words, _, _ = strings.Cut(strings.TrimSpace(words), "\n")
	n := 0
	for at := range words {
		if n == firstWords {
			return words[:at]
		}
		n++
	}
	return words
}

func bracketed(label string) string { return "[" + label + "]" }

// name stands for what a note would name document i by. A label of our own markup names a document wherever it stands, and so do first
// words that look like one.
func (f *found) name(i int, label string) content {
	first := f.first(i)
	if strings.HasPrefix(first, "[") && strings.HasSuffix(first, "]") {
		return xxh3.HashString128(first)
	}
	return xxh3.HashString128Seed(first, xxh3.HashString(label))
}

// callName stands for what a note would name a whole result by.
func callName(call string) content { return xxh3.HashString128("\x00" + call) }

// wholeOf is the content of a whole result, which is no document.
func wholeOf(text string) content {
	c := contentOf(text)
	c.Lo ^= 1
	return c
}

// replace writes the text with a note in place of the documents in drop.
func (f *found) replace(drop map[int]bool, note string) string {
	if f.own == nil {
		return f.Replace(drop, note)
	}
	var b strings.Builder
	at, first := 0, true
	for i, r := range f.own {
		if !drop[i] {
			continue
		}
		b.WriteString(f.text[at:r.Start])
		at = r.End
		if first {
			b.WriteString(note)
		} else if b.Len() > 0 && strings.HasPrefix(f.text[at:], "\n") {
			at++ // the line goes with the block
		}
		first = false
	}
	b.WriteString(f.text[at:])
	return b.String()
}

// contentOf returns the content of a text or a document, without the random IDs that some clients put into it.
func contentOf(text string) content { return hashOf(repeat.WithoutIDs(text)) }

// hashOf is not relied on: texts of one hash are compared. It is another one in tests.
var hashOf = xxh3.HashString128

// label names a text in a note.
func label(tx *Text) string {
	switch tx.Role {
	case System:
		return repeat.SystemPrompt
	case User:
		return repeat.UserMessage
	case Assistant:
		return repeat.AssistantMessage
	default:
		return notes.Tool(tx.Tool, repeat.SystemPrompt, repeat.UserMessage, repeat.AssistantMessage)
	}
}

// says returns what document i is compared by, and its hash.
func (x *request) says(f *found, i int) (string, content) {
	if x.c.Recorded {
		return f.docs[i].Text, contentOf(f.docs[i].Text)
	}
	text := f.says(i)
	return text, contentOf(text)
}

// standing returns the target that document i of a text may be replaced by a note to, and what the note names it by.
func (x *request) standing(s *seen, role Role, f *found, i int) (t target, first, in string, ok bool) {
	text, c := x.says(f, i)
	v := s.visible(x.c.Recorded)
	t, ok = v.at[c]
	if !ok || t.role < role || t.doc == whole {
		return t, "", "", false // what is trusted less may say beside it that it does not hold
	}
	tx, docs := x.shownText(s, t)
	if docs == nil || int(t.doc) >= len(docs.docs) {
		return t, "", "", false
	}
	if there, _ := x.says(docs, int(t.doc)); repeat.WithoutIDs(there) != repeat.WithoutIDs(text) {
		return t, "", "", false // two texts of one hash
	}
	if v.named[t.name] != t.content && !x.c.Recorded {
		return t, "", "", false // the note would name two texts
	}
	return t, docs.first(int(t.doc)), label(tx), true
}

// shownText returns the text that a target stands in, as it is fenced, and its documents.
func (x *request) shownText(s *seen, t target) (*Text, *found) {
	key := [2]int{t.message, int(t.text)}
	if known, ok := x.texts[key]; ok {
		return known.text, known.found
	}
	var m Message
	x.source.Load(t.message, &m)
	x.ready(s, t.message, &m)
	for j := range m.Texts {
		f, ok := x.documents(&m.Texts[j])
		x.keep(t.message, j, &m.Texts[j], f, ok)
	}
	known := x.texts[key]
	return known.text, known.found
}

// keep remembers a text of this request, and its documents, for comparisons.
func (x *request) keep(message, text int, tx *Text, f found, ok bool) {
	if x.texts == nil {
		x.texts = map[[2]int]keptText{}
	}
	k := keptText{text: new(Text)}
	*k.text = *tx
	if ok {
		k.found = &f
	}
	x.texts[[2]int{message, text}] = k
}

type keptText struct {
	text  *Text
	found *found // nil: none
}
