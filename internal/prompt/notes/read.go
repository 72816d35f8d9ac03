package notes

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// read returns the character at text[at:] and where the next one begins. Escapes of JSON and of programming languages are
// decoded, however often they were escaped. With maybe, it is a letter to those who read plain text and white space
// to those who read escapes.
func read(text string, at int) (r rune, maybe bool, next int) {
	if text[at] != '\\' {
		if text[at] < utf8.RuneSelf {
			return rune(text[at]), false, at + 1
		}
		r, n := utf8.DecodeRuneInString(text[at:])
		return r, false, at + n
	}
	for at < len(text) && text[at] == '\\' {
		at++
	}
	if at == len(text) {
		return '\\', false, at
	}
	digits := 0
	switch text[at] {
	case 'n', 't', 'r', 'b', 'f':
		return rune(text[at]), true, at + 1
	case 'u':
		digits = 4
	case 'x':
		digits = 2
	}
	if digits > 0 && at+1+digits <= len(text) {
		if v, err := strconv.ParseUint(text[at+1:at+1+digits], 16, 32); err == nil {
			return rune(v), false, at + 1 + digits
		}
	}
	return '\\', false, at
}

// letter returns the number of a letter of the alphabet, -1 of another letter. It is false for what is no letter.
func letter(r rune) (n int, ok bool) {
	r = narrow(r)
	switch {
	case r >= 'a' && r <= 'z':
		return int(r - 'a'), true
	case r >= 'A' && r <= 'Z':
		return int(r - 'A'), true
	case r < utf8.RuneSelf:
		return 0, false
	}
	return -1, isLetter(r)
}

// isLetter reports whether a character is a letter that is shown: fillers of Hangul are letters to Unicode, and show nothing.
func isLetter(r rune) bool {
	return unicode.IsLetter(r) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// narrow returns the ASCII letter that a wide one of East Asian texts looks like.
func narrow(r rune) rune {
	if r >= 'Ａ' && r <= 'Ｚ' || r >= 'ａ' && r <= 'ｚ' {
		return r - 'Ａ' + 'A'
	}
	return r
}

// gap is what stands between two letters.
type gap struct {
	quote, dash, quoteDash bool
	n                      int  // characters
	hyphen                 bool // the last of them is one
}

func (g *gap) add(r rune) {
	g.n++
	g.hyphen = r == '-' || r == '‐'
	switch {
	case r == '-' || r == '−' || r == '~' || r >= utf8.RuneSelf && unicode.Is(unicode.Pd, r):
		g.dash = true
		g.quoteDash = g.quoteDash || g.quote
	case strings.ContainsRune("\"'`", r) || r >= utf8.RuneSelf && unicode.Is(unicode.Quotation_Mark, r):
		g.quote = true
	}
}

func (g gap) ifDash() uint64 {
	if g.dash && (g.n > 1 || !g.hyphen) { // "byte-identical" has none
		return 1
	}
	return 0
}

func (g gap) ifQuoteDash() uint64 {
	if g.quoteDash {
		return 1
	}
	return 0
}

// masks returns for each letter the places that it has in letters.
func masks(letters string) (m [26]uint64) {
	for i := range len(letters) {
		m[letters[i]-'a'] |= 1 << i
	}
	return m
}
