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
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return "\n" + strings.TrimSuffix(markup.RenderEcho(f.cite(), text, false), "\n")
}

// excerpt is the beginning of a document. The question is in another message, and the same system text may come with other ones.
func (x *request) excerpt(text string) string {
	if x.e.echo == contextpilot.EchoWhole {
		return text
	}
	return excerpt.Of(text, "", x.e.echo, x.e.pilot.Tokenizer().Count)
}

var (
	numberLabel = regexp.MustCompile(`^\s*\[(\d+)\]`)
	nameOfTag   = regexp.MustCompile(`^[^>]*?\s(?:id|index|name|number)\s*=\s*["']?([\w.:/#-]{1,64})["']?[\s/>]`)
)

// cite returns a name for the first document: its label, what its tag says, or a part of its hash.
func (f *found) cite() string {
	for mode, name := range map[extract.Mode]*regexp.Regexp{extract.Numbered: numberLabel, extract.XMLTag: nameOfTag} {
		if m := name.FindStringSubmatch(f.Item(0)); f.Mode == mode && m != nil {
			return m[1]
		}
	}
	sum := xxh3.HashString128(f.docs[0].Text).Bytes()
	return hex.EncodeToString(sum[:3])
}
