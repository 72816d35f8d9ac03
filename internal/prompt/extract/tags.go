package extract

import "strings"

// tag is one name of a vocabulary between angle brackets.
type tag struct {
	span
	name  string
	close bool
	attrs bool // there is more than the name
	odd   bool // it may be a tag or not, or one that is opened and closed at once
}

// blanks end a tag's name.
const blanks = " \t\n\r\v\f"

// scanTags returns the tags of text whose names are in the vocabulary, in order. What has another '<' before its '>'
// is no tag.
func scanTags(text string, vocabulary map[string]bool) []tag {
	var tags []tag
	for at := 0; ; {
		i := strings.IndexByte(text[at:], '<')
		if i < 0 {
			return tags
		}
		t := tag{span: span{start: at + i}}
		at = t.start + 1
		if strings.HasPrefix(text[at:], "/") {
			t.close = true
			at++
		}
		n := strings.IndexAny(text[at:], blanks+"<>/")
		if n < 0 {
			return tags
		}
		t.name = text[at : at+n]
		at += n
		if !vocabulary[t.name] || text[at] == '<' {
			continue
		}
		end := strings.IndexAny(text[at:], "<>")
		if end < 0 {
			return tags
		}
		rest := text[at : at+end]
		at += end
		if text[at] == '<' {
			continue
		}
		at++
		t.end = at
		t.attrs = trim(rest) != ""
		t.odd = t.close && rest != "" || strings.HasPrefix(rest, "/") || strings.HasSuffix(rest, "/") || openQuote(rest)
		tags = append(tags, t)
	}
}

// openQuote reports whether a quotation mark of the attributes has no partner: then the '>' behind them was quoted.
func openQuote(attrs string) bool {
	quote := rune(0)
	for _, r := range attrs {
		switch {
		case quote == 0 && (r == '"' || r == '\''):
			quote = r
		case r == quote:
			quote = 0
		}
	}
	return quote != 0
}

// element is a pair of tags with nothing of the same name between them.
type element struct{ open, close tag }

func (e element) content() span { return span{e.open.end, e.close.start} }

// elements pairs the tags of one name. It reports false if they do not alternate.
func elements(tags []tag, name string) (list []element, ok bool) {
	var open *tag
	for i := range tags {
		t := &tags[i]
		switch {
		case t.name != name:
		case t.odd || t.close != (open != nil):
			return nil, false
		case t.close:
			list = append(list, element{*open, *t})
			open = nil
		default:
			open = t
		}
	}
	return list, open == nil
}
