package memory

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxListed is the length in bytes up to which a memory stands as a line: the tags of a block weigh little beside a longer one.
const maxListed = 256

// linePunctuation may stand in a line beside letters, marks, digits and single spaces. Colons may stand between digits.
const linePunctuation = ".,;!?'\"()-–—/%&+€$£°’‘“”…@=~_*"

// asLine returns a memory as a line of a list: "- " and its text. ok: the text is such that it cannot be taken for anything else,
// neither by a model nor by what reads prompts: one line that begins with a letter or a digit, without brackets and tags, without
// a colon as roles and notes have it, and without what is not printed. The text alone decides.
func asLine(text string) (line string, ok bool) {
	first, _ := utf8.DecodeRuneInString(text)
	if len(text) > maxListed || !utf8.ValidString(text) || !unicode.In(first, unicode.L, unicode.Nd) {
		return "", false
	}
	last := first
	for i, r := range text {
		switch {
		case unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector), r == '\u02d0',
			r == '\u02d1': // not printed, or like a colon
			return "", false
		case unicode.In(r, unicode.L, unicode.M, unicode.Nd), strings.ContainsRune(linePunctuation, r):
		case r == ' ' && last != ' ':
		case r == ':' && unicode.Is(unicode.Nd, last) && i+1 < len(text) && text[i+1] >= '0' && text[i+1] <= '9':
		default:
			return "", false
		}
		last = r
	}
	return "- " + text, true
}
