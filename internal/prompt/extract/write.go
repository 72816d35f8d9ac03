package extract

import (
	"sort"
	"strings"
)

// Plain reports whether [Found.Rebuild] loses nothing but white space: there are no attributes, no words between
// documents, no labels that a new number would make wrong. It is also false where the layout would be several times
// as long as the text.
func (f Found) Plain() bool { return f.plain }

// AsWritten returns f as one that is not [Found.Plain]: what is made of it keeps the text's own layout.
func (f Found) AsWritten() Found {
	f.plain = false
	return f
}

// Rebuild writes the text in the recorded layout with the documents named by order: all or some of them, in any
// order. An order that names a document twice or one that is not there changes nothing: the text comes back as it is.
func (f Found) Rebuild(order []int) string {
	if !f.distinct(order) {
		return f.text
	}
	docs := make([]string, len(order))
	for i, d := range order {
		docs[i] = f.Docs[d].Text
	}
	return f.form.render(docs)
}

// Item returns document i as it stands in the text, with its tags or its label: what [Found.Permute] moves.
func (f Found) Item(i int) string { return f.items[i].of(f.text) }

// Span returns where document i, as [Found.Item] has it, begins and ends in the text, in bytes.
func (f Found) Span(i int) (from, to int) { return f.items[i].start, f.items[i].end }

// Spans returns where each document, as [Found.Item] has it, begins and ends in the text, in bytes and in the order of the text.
func (f Found) Spans() [][2]int {
	spans := make([][2]int, len(f.items))
	for i, s := range f.items {
		spans[i] = [2]int{s.start, s.end}
	}
	return spans
}

// Inside reports whether a place of the text, in bytes, stands in a document or at its end.
func (f Found) Inside(at int) bool {
	i := sort.Search(len(f.items), func(i int) bool { return f.items[i].end >= at })
	return i < len(f.items) && f.items[i].start < at
}

// Overlaps reports whether a range of the text has a part of a document, of its tags or its label.
func (f Found) Overlaps(from, to int) bool {
	i := sort.Search(len(f.items), func(i int) bool { return f.items[i].end > from })
	return i < len(f.items) && f.items[i].start < to
}

// Permute writes the text with document order[i] in the place of document i and every other byte where it was. A
// label such as [2] goes with its document, so that what cites it stays true. An order that is no permutation of all
// documents changes nothing.
func (f Found) Permute(order []int) string {
	if len(order) != len(f.items) || !f.distinct(order) {
		return f.text
	}
	return f.splice(func(i int) (string, bool) { return f.items[order[i]].of(f.text), true })
}

// Without writes the text without the documents in drop and with every other byte where it was, except that a comma
// or separator goes with the document it parts from the rest. Numbers that are no document are ignored.
func (f Found) Without(drop map[int]bool) string {
	return f.splice(func(i int) (string, bool) { return f.items[i].of(f.text), !drop[i] })
}

// Collapse writes the text with words in place of all documents: in the recorded layout if the text is [Found.Plain],
// else where the first document was, with every byte around documents where it was.
func (f Found) Collapse(words string) string {
	doc := write(f.form.quote, words)
	if f.plain {
		return f.form.render([]string{doc})
	}
	return f.splice(func(i int) (string, bool) { return write(f.form.item, doc), i == 0 })
}

// Replace writes the text with words in the place of the first of the documents in drop, the others of them left out, and every other
// byte where it was.
func (f Found) Replace(drop map[int]bool, words string) string {
	first := -1
	for i := range f.items {
		if drop[i] {
			first = i
			break
		}
	}
	words = write(f.form.quote, words)
	if !f.form.numbered { // a number is a document's, and one that is gone has none
		words = write(f.form.item, words)
	}
	return f.splice(func(i int) (string, bool) {
		if i == first {
			return words, true
		}
		return f.items[i].of(f.text), !drop[i]
	})
}

// splice writes the text with each item replaced by what slot returns for it, or left out.
func (f Found) splice(slot func(i int) (item string, keep bool)) string {
	var b strings.Builder
	b.Grow(len(f.text))
	at, kept := 0, false
	for i, it := range f.items {
		item, keep := slot(i)
		if !f.form.parted || i == 0 || keep && kept {
			b.WriteString(f.text[at:it.start])
		}
		if keep {
			b.WriteString(item)
			kept = true
		}
		at = it.end
	}
	b.WriteString(f.text[at:])
	return b.String()
}

// distinct reports whether order names documents of the text, none of them twice.
func (f Found) distinct(order []int) bool {
	seen := make([]bool, len(f.Docs))
	for _, d := range order {
		if d < 0 || d >= len(seen) || seen[d] {
			return false
		}
		seen[d] = true
	}
	return true
}
