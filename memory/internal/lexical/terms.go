// Package lexical cuts texts into terms and scores them with BM25. It stands apart from its one importer because users read its rules
// in docs/memory.md and its fuzz targets need no index.
package lexical

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// MaxRunes is the length of the longest terms. A term of that length has 1 KiB at most.
const MaxRunes = 256

// Terms returns the words of a text in their order, with repeats: in lower case, without accents, letters and digits only.
// Scripts that are written without spaces give pairs of neighbouring characters instead of words. Of a longer word, such as
// an encoded picture, the first [MaxRunes] characters count: databases bound what they index.
func Terms(text string) []string {
	var terms []string
	word := make([]rune, 0, 32)
	dense := false // word is of a script without spaces
	end := func() {
		terms = appendTerms(terms, word, dense)
		word = word[:0]
	}
	for _, r := range strings.ToLower(norm.NFKD.String(text)) {
		switch {
		case unicode.Is(unicode.Mn, r): // an accent, taken apart from its letter
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
		default:
			if d := isDense(r); d != dense {
				end()
				dense = d
			}
			word = append(word, r)
		}
	}
	end()
	return terms
}

// isDense reports whether r is of a script without spaces. All of those follow U+0E00: what most texts hold ends there.
func isDense(r rune) bool {
	return r >= '\u0e00' && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer,
		unicode.Myanmar)
}

func appendTerms(terms []string, word []rune, dense bool) []string {
	if len(word) == 0 {
		return terms
	}
	if !dense || len(word) == 1 {
		return append(terms, string(word[:min(len(word), MaxRunes)]))
	}
	for i := range len(word) - 1 {
		terms = append(terms, string(word[i:i+2]))
	}
	return terms
}
