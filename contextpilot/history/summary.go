package history

import (
	"sort"
	"strings"
	"unicode"
)

// shorten returns the beginning of text that has at most limit tokens, ended by an empty line: whole lines or else whole words where
// that loses less than half of it.
func shorten(text string, limit int, count func(string) int) string {
	if count(text) <= limit {
		return text
	}
	ends := make([]int, 0, len(text)) // where a character may be the last
	for i := range text {
		ends = append(ends, i)
	}
	most := sort.Search(len(ends), func(i int) bool { return count(asLines(text[:ends[i]])) > limit }) - 1
	if most < 0 {
		return ""
	}
	text = text[:ends[most]]
	if i := strings.LastIndexByte(text, '\n'); i > len(text)/2 {
		text = text[:i]
	} else if i := strings.LastIndexFunc(text, unicode.IsSpace); i > len(text)/2 {
		text = text[:i]
	}
	return asLines(text)
}
