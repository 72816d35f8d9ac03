package bpe

import "unicode/utf8"

// Vocabularies spell bytes as characters that can be printed: those that are printable in Latin-1 as themselves, the
// others, in their order, as the characters from U+0100 on. A space is "Ġ".

// printable reports whether a byte is spelled as itself.
func printable(b byte) bool {
	return b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae
}

// alphabet is the value of every character that spells a byte, and the other way around.
type alphabet struct {
	bytes map[rune]byte
	runes [256]rune
}

func newAlphabet() *alphabet {
	a := &alphabet{bytes: make(map[rune]byte, 256)}
	next := rune(0x100)
	for b := range 256 {
		r := rune(b)
		if !printable(byte(b)) {
			r, next = next, next+1
		}
		a.bytes[r], a.runes[b] = byte(b), r
	}
	return a
}

// unspell appends the bytes that a spelling stands for, or returns false if it has a character that stands for none.
func (a *alphabet) unspell(dst, spelling []byte) ([]byte, bool) {
	for len(spelling) > 0 {
		r, n := utf8.DecodeRune(spelling)
		b, ok := a.bytes[r]
		if !ok {
			return dst, false
		}
		dst, spelling = append(dst, b), spelling[n:]
	}
	return dst, true
}

// Spell returns bytes as vocabularies spell them.
func Spell(text string) string {
	a := newAlphabet()
	out := make([]rune, len(text))
	for i := range len(text) {
		out[i] = a.runes[text[i]]
	}
	return string(out)
}
