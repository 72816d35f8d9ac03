package conversation

import (
	"slices"
	"strings"
	"unicode/utf8"
	"unique"

	"github.com/ragpilot/ragpilot/internal/prompt/notes"
	"github.com/ragpilot/ragpilot/internal/prompt/orders"
	"github.com/ragpilot/ragpilot/internal/prompt/repeat"
)

// known returns a text without the documents that stand further up, and which these are. Of a result they are the first several, their
// order may be another.
func (x *request) known(next *link, s *seen, message, text int, tx *Text, found *found, place orders.Key) (string, map[int]bool) {
	first := !s.multi && tx.Role == Tool && found.own == nil
	s.multi = s.multi || first
	if first && x.c.Place != nil {
		keys := make([]Sum, len(found.docs))
		for i, d := range found.docs {
			keys[i] = contentOf(d.Key)
		}
		order := x.ordered(place, len(keys), func() []int { return x.c.Place(x.ctx, keys) })
		return notes.Fence(x.reorder(found, order, found.Plain(), Change{Message: message, Role: Tool})), nil
	}
	if x.c.Recorded {
		return x.leaveOut(next, s, message, tx, found)
	}
	return x.refer(next, s, message, text, tx, found)
}

// names are those of all documents of the text, with what each stands for.
func (f *found) names(tx *Text) map[content]content {
	from := label(tx)
	out := make(map[content]content, len(f.docs))
	for i := range f.docs {
		name, c := f.name(i, from), contentOf(f.says(i))
		if other, ok := out[name]; ok && other != c {
			c = content{}
		}
		out[name] = c
	}
	return out
}

// refer puts a note in place of the documents that stand further up.
func (x *request) refer(next *link, s *seen, message, text int, tx *Text, found *found) (string, map[int]bool) {
	drop := map[int]bool{}
	var labels []string            // in the order of the text
	names := map[string][]string{} // first words of documents, by their text's label
	var beside map[content]content // made when it is needed
	for i := range found.docs {
		t, name, in, ok := x.standing(s, tx.Role, found, i)
		if !ok || notes.Only(found.docs[i].Text) {
			continue
		}
		if beside == nil {
			beside = found.names(tx)
		}
		if other, ok := beside[t.name]; ok && other != t.content {
			continue // what stands beside the note would bear the name, too
		}
		drop[i] = true
		if names[in] == nil {
			labels = append(labels, in)
		}
		names[in] = append(names[in], name)
	}
	if len(drop) == 0 {
		return found.text, nil
	}
	var lines []string
	for _, in := range labels {
		lines = append(lines, notes.Documents(names[in], in))
	}
	out := found.replace(drop, strings.Join(lines, " "))
	if len(out) >= x.came || !x.apart(text, tx, found.replace(drop, "")) {
		return found.text, nil
	}
	c := Change{Kind: LeftOut, Message: message, Role: tx.Role, Documents: len(found.docs), Gone: len(drop)}
	if len(drop) == len(found.docs) {
		c.Kind = Collapsed
		next.lines.Before += utf8.RuneCountInString(found.text)
		next.lines.After += utf8.RuneCountInString(out)
	}
	x.out.Changes = append(x.out.Changes, c)
	return out, drop
}

// apart reports whether what is left of a text makes no note of its own, with the other texts of its message either, and takes it for
// what is sent if so.
func (x *request) apart(text int, tx *Text, rest string) bool {
	if tx.Role != Tool {
		return notes.Fence(rest) == rest
	}
	was := x.parts[text]
	x.parts[text] = rest
	if notes.Fence(rest) == rest && slices.Equal(notes.FenceParts(x.parts), x.parts) {
		return true
	}
	x.parts[text] = was
	return false
}

// leaveOut drops the documents that stand further up, as was recorded.
func (x *request) leaveOut(next *link, s *seen, message int, tx *Text, found *found) (string, map[int]bool) {
	var keep []int
	drop := map[int]bool{}
	for i := range found.docs {
		if _, _, _, ok := x.standing(s, tx.Role, found, i); ok {
			drop[i] = true
		} else {
			keep = append(keep, i)
		}
	}
	c := Change{Kind: LeftOut, Message: message, Role: Tool, Documents: len(found.docs), Gone: len(drop)}
	if c.Gone == 0 {
		return found.text, nil
	}
	defer func() { x.out.Changes = append(x.out.Changes, c) }()
	if len(keep) > 0 {
		if found.Plain() {
			return notes.Fence(found.Rebuild(keep)), drop
		}
		return notes.Fence(found.Without(drop)), drop
	}
	if rest := found.Without(drop); notes.Fence(rest) != rest {
		return notes.Fence(rest), drop // what stood around the documents would make a note beside ours
	}
	c.Kind = Collapsed
	chars := utf8.RuneCountInString(found.text)
	note := notes.AllDocuments(c.Gone, chars)
	next.lines.Before += chars
	next.lines.After += utf8.RuneCountInString(note)
	return found.Collapse(note), drop
}

// shortText is the number of characters below which a repeated result is not worth a reference.
const shortText = 100

// result returns what is sent for a text without documents: a result that equals an earlier one of another call is replaced.
func (x *request) result(next *link, s *seen, message, text int, tx *Text) string {
	if tx.Role != Tool || !x.c.Look.Tools || tx.Call == "" || utf8.RuneCountInString(tx.Value) < shortText {
		out, _ := x.rows(next, s, message, tx, tx.Value)
		return out
	}
	c := wholeOf(tx.Value)
	v := s.visible(x.c.Recorded)
	t, known := v.at[c]
	if known && !tx.Fixed && (v.named[t.name] == c || x.c.Recorded) { // else the note would name two results
		first, _ := x.shownText(s, t)
		note := notes.Duplicate(first.Call)
		shorter := len(note) < x.came && !notes.Only(tx.Value) || x.c.Recorded
		if t.doc == whole && shorter && first.Call != tx.Call && repeat.WithoutIDs(first.Value) == repeat.WithoutIDs(tx.Value) {
			x.out.Changes = append(x.out.Changes, Change{Kind: Referred, Message: message, Role: Tool, Documents: 1, Gone: 1})
			return note
		}
	}
	out, cuts := x.rows(next, s, message, tx, tx.Value)
	if !known && (len(cuts) == 0 || x.c.Recorded) {
		x.show(next, s, message, tx, shown{content: c, name: callName(tx.Call), text: int32(text), doc: whole})
	}
	return out
}

// rowsOf enters the lines of a system text, those of each document by themselves: its documents may have any order.
func (x *request) rowsOf(at *link, s *seen, message int, tx *Text, found *found) {
	from := 0
	for i := range found.docs {
		first, last := found.span(i)
		_, _ = x.rows(at, s, message, tx, found.text[from:first])
		_, _ = x.rows(at, s, message, tx, found.text[first:last])
		from = last
	}
	_, _ = x.rows(at, s, message, tx, found.text[from:])
}

// rows replaces blocks of lines that stand further up, and returns what bytes of the text they were.
func (x *request) rows(at *link, s *seen, message int, tx *Text, value string) (out string, cuts [][2]int) {
	if !tx.Rows || tx.Role == Other {
		return value, nil
	}
	var r repeat.Result
	out, err := s.rows.Shorten(x.ctx, x.lined(message, tx, value), x.e.opt.Modulus, &r)
	if err != nil {
		return value, nil // the caller asks the context, too
	}
	at.lines.add(Lines{
		Replaced: r.BlocksDeduped, Total: r.BlocksTotal, System: r.SystemBlocksMatched, Saved: r.CharsSaved,
		Before: r.CharsBefore, After: r.CharsAfter,
	})
	return out, r.Cuts
}

// lined is a text as its rows are looked at.
func (x *request) lined(message int, tx *Text, value string) repeat.Text {
	out := repeat.Text{
		Text: value, Message: message, Label: unique.Make(label(tx)).Value(), Fixed: tx.Fixed || tx.Role != Tool && !x.c.Recorded,
		JSON: !x.c.Recorded, Merged: !x.c.Recorded,
	}
	switch tx.Role {
	case System:
		out.Kind = repeat.System
	case Tool:
		out.Kind = repeat.ToolResult
	case Assistant:
		out.Kind = repeat.Assistant
	}
	return out
}
