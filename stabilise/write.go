package stabilise

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/internal/prompt/notes"
)

// writer collects the edits of a body.
type writer struct {
	s     *Stabiliser
	b     *body
	place Place
	done  *Stats
	edits []edit
	texts []string // the system texts as they are sent
}

// edit replaces bytes [from, to) of the body.
type edit struct {
	from, to int
	with     string
}

// bytes returns the body with the edits, which do not overlap.
func (w *writer) bytes() []byte {
	if len(w.edits) == 0 {
		return w.b.raw
	}
	slices.SortStableFunc(w.edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	out := make([]byte, 0, len(w.b.raw)+256)
	at := 0
	for _, e := range w.edits {
		out = append(append(out, w.b.raw[at:e.from]...), e.with...)
		at = e.to
	}
	return append(out, w.b.raw[at:]...)
}

func (w *writer) replace(v gjson.Result, with string) {
	w.edits = append(w.edits, edit{v.Index, v.Index + len(v.Raw), with})
}

// insert adds bytes at a place.
func (w *writer) insert(at int, with string) { w.edits = append(w.edits, edit{at, at, with}) }

// remove takes the values out for which gone is true, with a comma each. One at least stays. from and to are where a value begins and ends.
func (w *writer) remove(n int, gone func(int) bool, from, to func(int) int) {
	for i := 0; i < n; i++ {
		if !gone(i) {
			continue
		}
		end := i
		for end+1 < n && gone(end+1) {
			end++
		}
		if end+1 < n {
			w.edits = append(w.edits, edit{from(i), from(end + 1), ""})
		} else {
			w.edits = append(w.edits, edit{to(i - 1), to(end), ""})
		}
		i = end
	}
}

func ends(v gjson.Result) int { return v.Index + len(v.Raw) }

// heads takes pieces out of the system texts.
func (w *writer) heads(f *finder) {
	gone := make([]bool, len(w.b.items)) // nothing stays of them
	for i := range w.b.heads {
		h := &w.b.heads[i]
		if !w.head(f, h) {
			continue
		}
		if h.item >= 0 {
			gone[h.item] = true
			continue
		}
		b := w.b
		w.remove(len(b.members), func(i int) bool { return i == b.top },
			func(i int) int { return b.keys[i].Index }, func(i int) int { return ends(b.members[i]) })
	}
	items := w.b.items
	w.remove(len(items), func(i int) bool { return gone[i] },
		func(i int) int { return items[i].Index }, func(i int) int { return ends(items[i]) })
}

// head takes pieces out of what one holder has, and reports whether nothing stays of it.
func (w *writer) head(f *finder, h *holder) (empty bool) {
	if h.parts == nil {
		return w.take(f, h.content)
	}
	gone := make([]bool, len(h.parts))
	kept := 0
	for i, part := range h.parts {
		if t, ok := textOf(part); ok {
			gone[i] = w.take(f, t)
		}
		if !gone[i] {
			kept++
		}
	}
	if kept == 0 {
		return len(gone) > 0
	}
	w.remove(len(gone), func(i int) bool { return gone[i] },
		func(i int) int { return h.parts[i].Index }, func(i int) int { return ends(h.parts[i]) })
	w.moveMarks(h, gone)
	return false
}

// moveMarks gives the marks of parts that go to the part in front of each, which the prompt is cached up to then.
func (w *writer) moveMarks(h *holder, gone []bool) {
	last, marked := -1, false // the last part that stays, and whether it has a mark
	for i, part := range h.parts {
		mark := markOf(part)
		switch {
		case !gone[i]:
			last, marked = i, mark != ""
		case mark != "" && last >= 0 && !marked && h.parts[last].IsObject():
			w.insert(ends(h.parts[last])-1, behindAll(h.parts[last].Raw, mark))
			marked = true
		}
	}
}

// behindAll returns a member as it is written behind the others of an object.
func behindAll(object, member string) string {
	if strings.TrimSpace(object[:len(object)-1]) == "{" {
		return member
	}
	return "," + member
}

// markOf returns the first mark of an object, as it is written there.
func markOf(v gjson.Result) string {
	found := ""
	v.ForEach(func(key, value gjson.Result) bool {
		if slices.Contains(marks, key.Str) && value.Type != gjson.Null {
			found = key.Raw + ":" + value.Raw
		}
		return found == ""
	})
	return found
}

// take takes pieces out of a text, and reports whether nothing of it stays.
func (w *writer) take(f *finder, v gjson.Result) (empty bool) {
	came, ok := text(v)
	if !ok {
		w.texts = append(w.texts, v.Raw)
		return false
	}
	out := f.take(came)
	if w.place == PlaceUser && notes.FenceMoved(out) != out {
		out = notes.FenceMovedWhere(out, newGuard(out, f.form).behind)
	}
	if strings.TrimSpace(out) == "" && out != came {
		return true
	}
	w.texts = append(w.texts, out)
	if out != came {
		w.replace(v, quote(out))
	}
	return false
}

// behind sends the pieces behind the messages, and those of earlier turns behind theirs.
func (w *writer) behind(t *table, q *turn, key sum) {
	b := w.b
	end := b.anchor()
	if end < 0 {
		return
	}
	if !q.named {
		key = nextSum(key, xxh3.HashString128(strings.Join(w.texts, "\x00")))
	}
	if b.list.Type == gjson.String {
		q.closed = func(int) bool { return false }
		q.chains = []sum{nextSum(key, sumOf(gjson.Parse(`{"role":"user","content":`+b.list.Raw+`}`)))}
	} else {
		q.closed = func(i int) bool { return b.result(b.first+i) && b.result(b.first+i+1) }
		for _, m := range b.items[b.first : end+1] {
			key = nextSum(key, sumOf(m))
			q.chains = append(q.chains, key)
		}
	}
	last := t.sent(q)
	for l := last; l != nil; l = l.before {
		if l != last {
			w.done.Again += int64(len(l.pieces))
		}
		w.note(b.first+l.message, l.pieces)
	}
}

// note sends pieces behind an item.
func (w *writer) note(i int, pieces []piece) {
	if len(pieces) == 0 {
		return
	}
	said := joined(pieces)
	b := w.b
	switch {
	case b.list.Type == gjson.String && w.place == PlaceUser:
		w.append(b.list, notes.Moved(said))
		return
	case b.list.Type == gjson.String:
		w.edits = append(w.edits,
			edit{b.list.Index, b.list.Index, `[{"role":"user","content":`}, edit{ends(b.list), ends(b.list), "}," + w.message(said) + "]"})
		return
	}
	m := b.items[i]
	if w.place == PlaceUser && m.Get("role").Str == "user" && !twice(m) {
		note := notes.Moved(said)
		switch content := w.content(m); {
		case content.Type == gjson.String:
			w.append(content, note)
			return
		case content.IsArray():
			kind := "text"
			if b.api == Responses {
				kind = "input_text"
			}
			part := `{"type":"` + kind + `","text":` + quote(note) + `}`
			if content.Get("#").Int() > 0 {
				part = "," + part
			}
			w.insert(ends(content)-1, part)
			return
		}
	}
	w.insert(ends(m), ","+w.message(said))
}

// append puts a note at the end of a string.
func (w *writer) append(v gjson.Result, note string) {
	q := quote("\n\n" + note)
	w.insert(ends(v)-1, q[1:len(q)-1])
}

// content returns where the content of an item stands.
func (w *writer) content(m gjson.Result) (v gjson.Result) {
	m.ForEach(func(key, value gjson.Result) bool {
		if key.Str == "content" {
			v = value
			return false
		}
		return true
	})
	return v
}

// message writes a message of its own.
func (w *writer) message(said string) string {
	role := w.b.role
	if w.place == PlaceUser {
		role, said = "user", notes.Moved(said)
	}
	return `{"role":"` + role + `","content":` + quote(said) + `}`
}

// fence fences what has the form of a note in the texts of all but the system.
func (w *writer) fence() {
	if w.place != PlaceUser {
		return
	}
	if w.b.list.Type == gjson.String {
		w.fenceTexts([]gjson.Result{w.b.list}, nil)
		return
	}
	for _, m := range w.b.items[w.b.first:] {
		if role := m.Get("role").Str; (role == "system" || role == "developer") && !twice(m) {
			continue
		}
		var texts, other []gjson.Result
		m.ForEach(func(key, value gjson.Result) bool {
			switch {
			case key.Str == "content":
				texts, other = contents(value, texts, other)
			case w.b.api == Responses && slices.Contains([]string{"output", "outputs", "results"}, key.Str):
				texts, other = contents(value, texts, other)
			}
			return true
		})
		w.fenceTexts(texts, other)
	}
}

// contents returns the strings of a content, and what else a tool or a document has in it.
func contents(v gjson.Result, texts, other []gjson.Result) (t, o []gjson.Result) {
	if v.Type == gjson.String {
		return append(texts, v), other
	}
	v.ForEach(func(_, part gjson.Result) bool {
		switch kind := part.Get("type").Str; {
		case part.Type == gjson.String:
			texts = append(texts, part)
		case strings.HasSuffix(kind, "text"):
			part.ForEach(func(key, value gjson.Result) bool {
				if key.Str == "text" && value.Type == gjson.String {
					texts = append(texts, value)
				}
				return true
			})
		case kind == "tool_result", kind == "toolResult":
			part.ForEach(func(key, value gjson.Result) bool {
				if key.Str == "content" {
					texts, other = contents(value, texts, other)
				}
				return true
			})
		case strings.HasSuffix(kind, "_result"), kind == "document":
			other = append(other, part)
		}
		return true
	})
	return texts, other
}

// fenceTexts fences the strings of one message, which a reader may see as one, and other JSON.
func (w *writer) fenceTexts(texts, other []gjson.Result) {
	parts := make([]string, len(texts))
	for i, t := range texts {
		parts[i] = t.Raw[1 : len(t.Raw)-1]
	}
	n := len(w.edits)
	for i, out := range notes.FenceMovedParts(parts) {
		if out != parts[i] {
			w.edits = append(w.edits, edit{texts[i].Index + 1, ends(texts[i]) - 1, out})
		}
	}
	for _, o := range other {
		if out := notes.FenceMoved(o.Raw); out != o.Raw {
			w.replace(o, out)
		}
	}
	if len(w.edits) > n {
		w.done.Fenced++
	}
}
