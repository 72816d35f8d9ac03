package recorded

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// DefaultHint is the wording of a reference to an earlier turn.
const DefaultHint = "Please refer to [Doc {doc_id}] from the previous conversation turn."

// Hint is a template of references to earlier turns. The zero Hint is [DefaultHint].
type Hint struct{ pieces []piece }

// piece is a text and the placeholder behind it, "" if there is none.
type piece struct{ text, name string }

var defaultHint, _ = ParseHint(DefaultHint)

// ParseHint reads a template as Python's str.format does: it may use {doc_id}, {turn_number} and {source_request}, and
// {{ and }} are braces. Any other placeholder is an error that names it, also one with a conversion or a format
// specification, and so is a single brace. An empty template is [DefaultHint].
func ParseHint(template string) (Hint, error) {
	var h Hint
	var text strings.Builder
	for i := 0; i < len(template); i++ {
		c := template[i]
		switch {
		case c != '{' && c != '}':
			text.WriteByte(c)
			continue
		case i+1 < len(template) && template[i+1] == c:
			text.WriteByte(c)
			i++
			continue
		}
		end := strings.IndexByte(template[i:], '}')
		if end <= 0 {
			return Hint{}, fmt.Errorf("hint_template: single %c, where %[1]c%[1]c is a brace", c)
		}
		p := piece{text.String(), template[i+1 : i+end]}
		switch p.name {
		case "doc_id", "turn_number", "source_request":
		default:
			return Hint{}, errors.New("hint_template: unknown placeholder " + template[i:i+end+1])
		}
		h.pieces = append(h.pieces, p)
		text.Reset()
		i += end
	}
	if text.Len() > 0 {
		h.pieces = append(h.pieces, piece{text: text.String()})
	}
	return h, nil
}

// Docs returns how often a hint names its doc.
func (h Hint) Docs() (n int) {
	for _, p := range h.filled() {
		if p.name == "doc_id" {
			n++
		}
	}
	return n
}

func (h Hint) filled() []piece {
	if h.pieces == nil {
		return defaultHint.pieces
	}
	return h.pieces
}

// text is the hint for a doc that src has shown.
func (h Hint) text(doc string, src source) string {
	var out strings.Builder
	for _, p := range h.filled() {
		out.WriteString(p.text)
		switch p.name {
		case "doc_id":
			out.WriteString(doc)
		case "turn_number":
			out.WriteString(strconv.Itoa(src.depth))
		case "source_request":
			out.WriteString(src.id)
		}
	}
	return out.String()
}
