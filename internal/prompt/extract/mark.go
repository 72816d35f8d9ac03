package extract

import "strings"

// Mark returns where the first thing stands that may begin a document, -1 if there is none: a tag such as <doc, a number in brackets, or an
// object of JSON. Where [Find] is not sure which the documents of a text are, all that follows may be one.
func Mark(text string) int {
	for at := 0; ; at++ {
		i := strings.IndexAny(text[at:], "<[{")
		if i < 0 {
			return -1
		}
		if at += i; marks(text[at], text[at+1:]) {
			return at
		}
	}
}

// marks reports whether a character begins a mark, by what stands behind it.
func marks(first byte, rest string) bool {
	switch first {
	case '<':
		rest = strings.ReplaceAll(rest[:min(len(rest), 20)], "ſ", "s") // a small s in any other letter case
		for _, name := range []string{"doc", "context", "passage", "reference", "file", "item", "result"} {
			if len(rest) >= len(name) && strings.EqualFold(rest[:len(name)], name) {
				return true
			}
		}
		return false
	case '[':
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		return digits > 0 && strings.HasPrefix(rest[digits:], "]")
	}
	return strings.HasPrefix(strings.TrimLeft(rest, " \t\n\f\r"), `"`)
}
