package extract

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// marker is a number in square brackets.
type marker struct {
	span
	number int  // -1: too long, or with a zero in front
	begins bool // nothing but white space stands before it on its line
	label  bool // it stands apart from the words around it; one that begins a line may touch the word behind it
}

// labelled is the layout of documents with a number in front, of which first is the text's first one.
func labelled(prefix string, first int) layout {
	label := func(number int, doc string) string { return "[" + strconv.Itoa(number) + "] " + doc }
	return layout{
		numbered: true,
		item:     func(doc string) string { return label(first, doc) },
		render: func(docs []string) string {
			var b strings.Builder
			b.WriteString(prefix)
			for i, d := range docs {
				if b.Len() > 0 {
					b.WriteByte('\n')
				}
				b.WriteString(label(i+1, d))
			}
			return b.String()
		},
	}
}

// findNumbered looks for labels. Either two or more begin lines and count one by one: then a number inside a line is
// a citation. Or all numbers of the text are labels and count from 1: one more, in brackets, and it is unknown which
// of them are citations. If not even the first one begins a line there must be least of them, as two may be citations
// that happen to be first and second.
func findNumbered(text string, least int) (Found, bool) {
	all := markers(text)
	var labels []marker
	for _, m := range all {
		if m.begins && m.label {
			labels = append(labels, m)
		}
	}
	if len(labels) < 2 || !counting(labels) {
		labels = all
		if len(labels) < 2 || labels[0].number != 1 || !counting(labels) || !labels[0].begins && len(labels) < least {
			return Found{}, false
		}
	}
	plain := labels[0].number == 1 && len(labels) == len(all)
	ranges, items := make([]span, len(labels)), make([]span, len(labels))
	for i, m := range labels {
		end := len(text)
		if i+1 < len(labels) {
			end = labels[i+1].start
		}
		ranges[i] = span{m.end, end}.trimmed(text)
		items[i] = span{m.start, ranges[i].end}
		if ranges[i].start == ranges[i].end {
			return Found{}, false
		}
	}
	prefix := text[:labels[0].start]
	return Found{
		Mode: Numbered, Docs: contents(text, ranges), Prefix: prefix,
		text: text, items: items, form: labelled(prefix, labels[0].number), plain: plain,
	}, true
}

// counting reports whether all are labels and each is one more than the one before.
func counting(list []marker) bool {
	for i, m := range list {
		if !m.label || m.number < 0 || m.number != list[0].number+i {
			return false
		}
	}
	return true
}

// markers returns every number in square brackets.
func markers(text string) []marker {
	const digits = "0123456789"
	var out []marker
	for at := 0; ; {
		i := strings.IndexByte(text[at:], '[')
		if i < 0 {
			return out
		}
		start := at + i
		at = start + 1
		number := text[at : len(text)-len(strings.TrimLeft(text[at:], digits))]
		at += len(number)
		if number == "" || !strings.HasPrefix(text[at:], "]") {
			continue
		}
		at++
		m := marker{span: span{start, at}, number: -1}
		if len(number) <= 9 && (number[0] != '0' || number == "0") {
			m.number, _ = strconv.Atoi(number)
		}
		line := strings.TrimRightFunc(text[:start], inLine)
		m.begins = line == "" || strings.HasSuffix(line, "\n")
		before, _ := utf8.DecodeLastRuneInString(text[:start])
		after, _ := utf8.DecodeRuneInString(text[at:])
		m.label = (start == 0 || isSpace(before)) && (at == len(text) || isSpace(after) || m.begins && unicode.IsLetter(after))
		out = append(out, m)
	}
}

// inLine reports whether r is white space that does not end a line.
func inLine(r rune) bool { return r != '\n' && isSpace(r) }
