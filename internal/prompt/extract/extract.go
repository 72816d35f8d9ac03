package extract

import (
	"encoding/json"
	"strings"
	"unicode"
)

// Mode is a way of marking documents.
type Mode string

// The modes; each knows marks of one kind, except the first.
const (
	Auto           Mode = "auto"            // tags, then labels, then results
	XMLTag         Mode = "xml_tag"         // <documents><document>…</document>…</documents>
	Numbered       Mode = "numbered"        // [1] … [2] …
	JSONResults    Mode = "json_results"    // {"results":[…,…]}
	Separator      Mode = "separator"       // documents with a line of --- between them
	MarkdownHeader Mode = "markdown_header" // sections that begin with # or ##
)

// ParseMode returns the mode of that name in any letter case; an unknown name is [Auto].
func ParseMode(name string) Mode {
	switch m := Mode(strings.ToLower(strings.TrimSpace(name))); m {
	case XMLTag, Numbered, JSONResults, Separator, MarkdownHeader:
		return m
	}
	return Auto
}

// Options say what to look for. The zero value is the recorded default.
type Options struct {
	Mode Mode // "" and what is unknown act as [Auto]
	// Tag is the item's name that [XMLTag] tries before the known ones, first as it is, then in lower case; with an "s" it
	// is the wrapper's. "" means the known ones only.
	Tag string
	// Separator is the line between documents for [Separator], without white space around it; "" means ---.
	Separator string
}

// Doc is one document of a text.
type Doc struct {
	// Key is the document's identity: of a result its url, path, file, filename, uri or href, else its JSON on one line;
	// otherwise the text itself.
	Key string
	// Text is the content without white space around it, of a result its JSON as it stands in the text.
	Text string
}

// Found is the documents of one text, in the order of the text. It holds on to the text.
type Found struct {
	Mode           Mode // how they are marked, never [Auto]
	Docs           []Doc
	Prefix, Suffix string // around the documents, as the recorded implementation cuts them

	text  string
	items []span // items[i] is what moves when document i does: its tags or its label, too
	form  layout
	plain bool
}

// span is a range of bytes.
type span struct{ start, end int }

func (s span) of(text string) string { return text[s.start:s.end] }

// layout is one mode's way of writing documents. A nil function writes a document as it is.
type layout struct {
	render func(docs []string) string // as the recorded implementation writes all documents, with everything around them
	item   func(doc string) string    // as one document stands in the text between the other bytes
	quote  func(words string) string  // as words that are no document of the text stand as a document
	// parted: what stands between two items only parts them, and goes when one of them goes.
	parted bool
	// numbered: item adds the number of a document, which other words do not have.
	numbered bool
}

// write calls one of a layout's functions.
func write(f func(string) string, text string) string {
	if f == nil {
		return text
	}
	return f(text)
}

// Find returns the documents of text. It reports false if there are none, and if it cannot be sure which they are.
func Find(text string, o Options) (Found, bool) {
	switch o.Mode {
	case JSONResults:
		return findResults(text)
	case Separator:
		return findSeparated(text, o.Separator)
	case MarkdownHeader:
		return findSections(text)
	case XMLTag:
		if isJSON(text) {
			return Found{}, false
		}
		f, ok, _ := findTagged(text, o.Tag)
		// Where the tag stands as it was asked for, it was not understood: others may stand inside a document.
		if lower := strings.ToLower(o.Tag); !ok && lower != o.Tag && !strings.Contains(text, "<"+o.Tag) && !strings.Contains(text, "</"+o.Tag) {
			f, ok, _ = findTagged(text, lower)
		}
		return f, ok
	case Numbered:
		if isJSON(text) {
			return Found{}, false
		}
		return findNumbered(text, 2)
	}
	if isJSON(text) {
		return findResults(text)
	}
	f, ok, tags := findTagged(text, "")
	if ok || tags { // labels between tags that were not understood would tear documents apart
		return f, ok
	}
	return findNumbered(text, 3)
}

// isJSON reports whether text is a JSON object, list or string.
func isJSON(text string) bool {
	body := strings.TrimFunc(text, isSpace)
	return body != "" && strings.ContainsRune(`{["`, rune(body[0])) && json.Valid([]byte(body))
}

// isSpace agrees with Python's str.isspace, which counts four separators that Unicode does not.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

func trim(s string) string { return strings.TrimFunc(s, isSpace) }

func isBlank(s string) bool { return trim(s) == "" }

// trimmed returns s without the white space around its text.
func (s span) trimmed(text string) span {
	all := s.of(text)
	left := strings.TrimLeftFunc(all, isSpace)
	start := s.start + len(all) - len(left)
	return span{start, start + len(strings.TrimRightFunc(left, isSpace))}
}

// contents returns the documents that stand in ranges of text.
func contents(text string, ranges []span) []Doc {
	docs := make([]Doc, len(ranges))
	for i, r := range ranges {
		s := trim(r.of(text))
		docs[i] = Doc{Key: s, Text: s}
	}
	return docs
}
