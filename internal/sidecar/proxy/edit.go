package proxy

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// edit replaces bytes [from, to) of a body, or of one of its items.
type edit struct {
	from, to int
	with     string
}

// splice applies edits that do not overlap.
func splice(body []byte, edits []edit) []byte {
	if len(edits) == 0 {
		return body
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	size := len(body)
	for _, e := range edits {
		size += len(e.with) - (e.to - e.from)
	}
	out := make([]byte, 0, size)
	at := 0
	for _, e := range edits {
		out = append(out, body[at:e.from]...)
		out = append(out, e.with...)
		at = e.to
	}
	return append(out, body[at:]...)
}

// quote writes a JSON string as JavaScript's and Python's clients do: no HTML escapes.
func quote(text string) string {
	var b strings.Builder
	b.Grow(len(text) + len(text)/16 + 16) // most texts have few escapes
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string cannot fail
	return strings.TrimSuffix(b.String(), "\n")
}
