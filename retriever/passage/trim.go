package passage

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// tornHead returns where the first whole sentence of a chunk begins, 0 if the chunk seems to begin with one.
func tornHead(text string) int {
	if !unicode.IsLower(firstLetter(text)) {
		return 0
	}
	if start := nextStart(text, 0); start <= len(text)/2 {
		return start
	}
	return 0
}

// tornTail returns where the last whole sentence of a chunk ends, len(text) if the chunk seems to end with one.
func tornTail(text string) int {
	body := strings.TrimRightFunc(text, unicode.IsSpace)
	if endsWithMark(body) {
		return len(text)
	}
	last := 0
	for at, ok := sentenceStart(text, len(text)/2, len(text)); ok; at, ok = sentenceStart(text, at+1, len(text)) {
		last = at
	}
	if last == 0 {
		return len(text)
	}
	return last
}

// endsWithMark reports whether a text ends with a mark that ends a sentence, and what may close behind it.
func endsWithMark(text string) bool {
	from := runeStart(text, len(text)-lookBack)
	for at := len(text); at > from; {
		r, size := utf8.DecodeLastRuneInString(text[:at])
		at -= size
		if mayEnd(r) || r == ':' {
			end, _ := afterClosing(text, at+size)
			return end == len(text)
		}
	}
	return false
}
