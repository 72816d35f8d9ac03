package proxy

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/ragpilot/ragpilot/conversation"
)

// result is what ResultHeader says was done to a request. Member names are the reference's.
type result struct {
	Intercepted  bool     `json:"intercepted"`
	Reordered    bool     `json:"documents_reordered"`
	Documents    int      `json:"total_documents"` // of the reordered texts
	Deduplicated int      `json:"documents_deduplicated"`
	Slimmed      int      `json:"documents_slimmed"` // of texts with nothing but a note left
	CharsBefore  int      `json:"chars_before_slim"` // these and Blocks are of the whole body, all else is of what is new in it
	CharsAfter   int      `json:"chars_after_slim"`
	CharsSaved   int      `json:"chars_saved"`
	Messages     int      `json:"message_count"`
	Sources      sources  `json:"sources"`
	Details      []detail `json:"reorder_details"`
	Blocks       blocks   `json:"dedup"`
	RequestID    string   `json:"request_id,omitempty"`
	Stabilised   bool     `json:"stabilised,omitempty"` // by a rule of package stabilise
	Shadow       bool     `json:"shadow,omitempty"`     // planned, but forwarded as it came
}

// ascii is JSON for a header, whose bytes clients do not read alike: what is beyond ASCII is escaped.
func ascii(text []byte) string {
	if !bytes.ContainsFunc(text, func(r rune) bool { return r > '~' }) {
		return string(text)
	}
	var b strings.Builder
	for _, r := range string(text) {
		switch hi, lo := utf16.EncodeRune(r); {
		case r <= '~':
			b.WriteRune(r)
		case hi != utf8.RuneError:
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// sources counts the texts with documents that were changed.
type sources struct {
	System int `json:"system"`
	Tools  int `json:"tool_results"`
}

// detail is about one text: its order, or how many documents were left out.
type detail struct {
	Source    string `json:"source"`
	Count     int    `json:"count"`
	Original  []int  `json:"original_order,omitempty"`
	Reordered []int  `json:"reordered_order,omitempty"`
	Deduped   int    `json:"deduped,omitempty"`
	Echoed    bool   `json:"echoed,omitempty"` // document 0 is shown once more
}

type blocks struct {
	Deduped int `json:"blocks_deduped"`
	Total   int `json:"blocks_total"`
	System  int `json:"system_blocks_matched"`
	Saved   int `json:"chars_saved"`
}

// count takes in what was done to a body.
func (r *result) count(t *conversation.Forward, b *body) {
	l := t.Lines
	r.Blocks = blocks{Deduped: l.Replaced, Total: l.Total, System: l.System, Saved: l.Saved}
	r.CharsBefore, r.CharsAfter, r.CharsSaved = l.Before, l.After, l.Before-l.After
	for _, c := range t.Changes {
		source, changed := fmt.Sprintf("tool_result[%d]", b.items[c.Message].message), &r.Sources.Tools
		if c.Role == conversation.System {
			source, changed = fmt.Sprintf("system[%d]", b.items[c.Message].message), &r.Sources.System
		}
		d := detail{Source: source, Count: c.Documents}
		switch c.Kind {
		case conversation.Ordered:
			r.Reordered = true
			r.Documents += c.Documents
			d.Echoed = c.Echo
			d.Original, d.Reordered = make([]int, c.Documents), c.Order
			for i := range d.Original {
				d.Original[i] = i
			}
		case conversation.Collapsed:
			r.Slimmed += c.Gone
			fallthrough
		case conversation.LeftOut:
			r.Deduplicated += c.Gone
			d.Count, d.Deduped = max(c.Documents-c.Gone, 1), c.Gone
		case conversation.Referred:
			r.Deduplicated += c.Gone
			continue
		}
		*changed++
		r.Details = append(r.Details, d)
	}
}
