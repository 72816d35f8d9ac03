package extract

import (
	"slices"
	"strings"
	"unicode/utf8"
)

const defaultSeparator = "---"

// lines calls do for every line of text, with the range of its words; the line feed behind it is not part of it.
func lines(text string, do func(line span)) {
	for at := 0; at <= len(text); {
		end := len(text)
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i
		}
		do(span{at, end})
		at = end + 1
	}
}

// findSeparated looks for lines that are the separator and nothing else.
func findSeparated(text, separator string) (Found, bool) {
	separator = trim(separator)
	if separator == "" {
		separator = defaultSeparator
	}
	var items []span
	parts, at := 0, 0
	add := func(end int) {
		parts++
		if part := (span{at, end}).trimmed(text); part.start < part.end {
			items = append(items, part)
		}
	}
	lines(text, func(line span) {
		if line.of(text) == separator {
			add(line.start)
			at = line.end
		}
	})
	add(len(text))
	// An indented separator at an end of a document would become a real one.
	edge := func(it span) bool {
		doc := it.of(text)
		first, _, _ := strings.Cut(doc, "\n")
		return first == separator || doc[strings.LastIndexByte(doc, '\n')+1:] == separator
	}
	if len(items) < 2 || slices.ContainsFunc(items, edge) {
		return Found{}, false
	}
	render := func(docs []string) string { return strings.Join(docs, "\n"+separator+"\n") }
	return Found{
		Mode: Separator, Docs: contents(text, items),
		text: text, items: items, form: layout{render: render, parted: true}, plain: parts == len(items),
	}, true
}

// findSections looks for lines that begin with # or ##. Inside a block of code they are comments; a block that is
// never closed would swallow what is put behind it.
func findSections(text string) (Found, bool) {
	var starts []int
	fence := ""
	lines(text, func(line span) {
		switch words := line.of(text); {
		case fence != "":
			if closesFence(words, fence) {
				fence = ""
			}
		case isHeader(words):
			starts = append(starts, line.start)
		default:
			fence = opensFence(words)
		}
	})
	if len(starts) < 2 || fence != "" {
		return Found{}, false
	}
	items := make([]span, len(starts))
	for i, start := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		items[i] = span{start, end}.trimmed(text)
	}
	prefix := text[:starts[0]]
	render := func(docs []string) string {
		if lead := strings.TrimRightFunc(prefix, isSpace); lead != "" {
			docs = slices.Concat([]string{lead}, docs)
		}
		return strings.Join(docs, "\n\n")
	}
	return Found{
		Mode: MarkdownHeader, Docs: contents(text, items), Prefix: prefix,
		text: text, items: items, form: layout{render: render}, plain: true,
	}, true
}

// isHeader reports whether a line begins with one or two number signs and then white space, or nothing.
func isHeader(line string) bool {
	rest := strings.TrimLeft(line, "#")
	if n := len(line) - len(rest); n < 1 || n > 2 {
		return false
	}
	r, _ := utf8.DecodeRuneInString(rest)
	return rest == "" || isSpace(r)
}

// opensFence returns the marks that begin a block of code, however far indented, or "".
func opensFence(line string) string {
	words := strings.TrimLeftFunc(line, isSpace)
	for _, mark := range []string{"`", "~"} {
		rest := strings.TrimLeft(words, mark)
		if n := len(words) - len(rest); n >= 3 && (mark == "~" || !strings.Contains(rest, "`")) {
			return words[:n]
		}
	}
	return ""
}

// closesFence reports whether line ends the block that the marks fence began.
func closesFence(line, fence string) bool {
	words := trim(line)
	return len(words) >= len(fence) && strings.Trim(words, fence[:1]) == ""
}
