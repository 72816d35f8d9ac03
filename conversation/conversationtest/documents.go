package conversationtest

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// form is how the documents of a text are marked.
type form uint8

const (
	none    form = iota
	own          // <doc LABEL> on a line, and what closes it on another
	tags         // <documents><document>…</document></documents> and the like
	results      // {"results":[…]}
)

// doc is a document that stands in a text.
type doc struct {
	label    string // of own markup
	fenced   bool   // own markup with a word that closes it
	text     string
	from, to int // where it stands, marks included
}

// documentsOf finds the documents of a text.
func documentsOf(text string) (form, []doc) {
	if list := ownBlocks(text); len(list) > 0 {
		return own, list
	}
	if list := jsonResults(text); len(list) > 0 {
		return results, list
	}
	if list, ok := elementsIn(text); ok && len(list) > 0 {
		return tags, list
	}
	return none, nil
}

var opening = regexp.MustCompile(`<doc ([^ <>\n]+?)( fence=([^ <>\n]+))?>\n`)

// ownBlocks finds blocks of our own markup, outside of each other.
func ownBlocks(text string) []doc {
	var out []doc
	for at := 0; ; {
		m := opening.FindStringSubmatchIndex(text[at:])
		if m == nil {
			return out
		}
		d := doc{label: text[at+m[2] : at+m[3]], from: at + m[0]}
		body := at + m[1]
		closing := "\n</doc>"
		if m[6] >= 0 {
			d.fenced = true
			closing = "\n</doc " + text[at+m[6]:at+m[7]] + ">"
		}
		n := strings.Index(text[body:], closing)
		if n < 0 {
			at = body
			continue
		}
		d.text, d.to = text[body:body+n], body+n+len(closing)
		out, at = append(out, d), d.to
	}
}

var element = regexp.MustCompile(`(?s)<(document|context|passage|reference|file)( [^<>]*)?>` +
	`(.*?)</(document|context|passage|reference|file)>`)

// elementsIn finds elements; paired: each ends with the name that it begins with, and they are two at least or in a wrapper.
func elementsIn(text string) (docs []doc, paired bool) {
	paired = true
	for _, m := range element.FindAllStringSubmatchIndex(text, -1) {
		name := text[m[2]:m[3]]
		alone := len(docs) == 0 && !strings.Contains(text[:m[0]], "<"+name+"s>") && strings.Count(text, "<"+name+">") < 2
		paired = paired && name == text[m[8]:m[9]] && !alone
		docs = append(docs, doc{text: strings.TrimSpace(text[m[6]:m[7]]), from: m[0], to: m[1]})
	}
	return docs, paired
}

// jsonResults finds the results of an object. Each is known by its JSON as it is written.
func jsonResults(text string) []doc {
	var object struct{ Results []json.RawMessage }
	if !strings.HasPrefix(strings.TrimSpace(text), "{") || json.Unmarshal([]byte(text), &object) != nil {
		return nil
	}
	var out []doc
	at := strings.Index(text, `"results"`)
	for _, raw := range object.Results {
		i := strings.Index(text[at:], string(raw))
		if i < 0 {
			return nil
		}
		d := doc{text: string(raw), from: at + i, to: at + i + len(raw)}
		out, at = append(out, d), d.to
	}
	return out
}

var echoOpening = regexp.MustCompile(`\n<doc [^ <>\n]+ again(?: fence=([^ <>\n]+))?>\n`)

// withoutEcho takes one echo of a document out of a text that has no other blocks of our own markup.
func withoutEcho(text string, docs []doc) string {
	m := echoOpening.FindStringSubmatchIndex(text)
	if m == nil {
		return text
	}
	closing := "\n</doc>"
	if m[2] >= 0 {
		closing = "\n</doc " + text[m[2]:m[3]] + ">"
	}
	shown, behind, ok := strings.Cut(text[m[1]:], closing)
	if !ok || !slices.ContainsFunc(docs, func(d doc) bool { return strings.Contains(d.text, shown) }) {
		return text
	}
	return text[:m[0]] + behind
}

// around returns a text without its documents and what parts them: white space and commas.
func around(text string, docs []doc) string {
	var b strings.Builder
	at := 0
	for i, d := range docs {
		gap := text[at:d.from]
		if i > 0 {
			gap = strings.Trim(gap, " \t\r\n,")
		}
		b.WriteString(gap)
		at = d.to
	}
	b.WriteString(text[at:])
	return b.String()
}
