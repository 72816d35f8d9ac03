package conversation

import (
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/prompt/excerpt"
	"github.com/ragpilot/ragpilot/internal/prompt/extract"
	"github.com/ragpilot/ragpilot/internal/prompt/markup"
)

// echoes reports whether the first document of a system text may be shown once more: not inside JSON.
func (x *request) echoes(f *found) bool {
	return x.e.echo != 0 && !x.c.Recorded && f.Mode != extract.JSONResults
}

// echo returns what is shown of the first document behind the last one, in the markup of our own, or "". It follows from the text and
// the order alone, so that all replicas send the same: the document stands neither first, as it came, nor last.
func (x *request) echo(f *found, order []int) string {
	if top := f.Item(0); f.Item(order[0]) == top || f.Item(order[len(order)-1]) == top || !x.echoes(f) {
		return ""
	}
	text := x.excerpt(f.docs[0].Text)
	if strings.TrimSpace(text) == "" || markup.In(text) {
		return ""
	}
	return "\n" + strings.TrimSuffix(markup.RenderEchoIn(f.cite(), text, f.text), "\n")
}

// excerpt is the beginning of a document. The question is in another message, and the same system text may come with other ones. Where only
// a part is shown, it ends in front of what may open an element or a fence of code: what closes it may not be in that part.
func (x *request) excerpt(text string) string {
	if x.e.echo == contextpilot.EchoWhole {
		return text
	}
	part := excerpt.Of(text, "", x.e.echo, contextpilot.Estimate{}.Count)
	if part == text {
		return text
	}
	for _, opens := range []string{"<", "```", "~~~"} {
		part, _, _ = strings.Cut(part, opens)
	}
	return strings.TrimSpace(part)
}

var (
	numberLabel = regexp.MustCompile(`^\s*\[(\d+)\]`)
	ownLabel    = regexp.MustCompile(`^\s*<doc ([^\s<>"'=]{1,64})(?: fence=[^\s<>]+)?>`)
	openingTag  = regexp.MustCompile(`^\s*<[\w:.-]+((?:\s+[\w:.-]+\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'<>]+))*)\s*>`)
	attribute   = regexp.MustCompile(`\s+([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>]+))`)
	plainName   = regexp.MustCompile(`^[\w.:/#-]{1,64}$`)
)

// cite returns a name for the first document: what the client calls it, if it calls no other one so, or a part of its hash.
func (f *found) cite() string {
	name := f.calls(0)
	for i := 1; i < len(f.docs) && name != ""; i++ {
		if f.calls(i) == name {
			name = ""
		}
	}
	if name != "" {
		return name
	}
	sum := xxh3.HashString128(f.docs[0].Text).Bytes()
	return hex.EncodeToString(sum[:3])
}

// calls returns what the client calls document i: its label, or what its tag says; "" if that is no plain name.
func (f *found) calls(i int) string {
	item := f.Item(i)
	switch f.Mode {
	case extract.Numbered:
		if m := numberLabel.FindStringSubmatch(item); m != nil {
			return m[1]
		}
	case extract.XMLTag:
		if m := ownLabel.FindStringSubmatch(item); m != nil {
			return m[1]
		}
		tag := openingTag.FindStringSubmatch(item)
		if tag == nil {
			return ""
		}
		for _, a := range attribute.FindAllStringSubmatch(tag[1], -1) {
			switch value := a[2] + a[3] + a[4]; a[1] {
			case "id", "index", "name", "number":
				if plainName.MatchString(value) {
					return value
				}
			}
		}
	}
	return ""
}
