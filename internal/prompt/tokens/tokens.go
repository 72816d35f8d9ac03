package tokens

import (
	"iter"
	"unicode"
	"unicode/utf8"
)

// MaxPiece is the largest number of characters in one token.
const MaxPiece = 6

// Classes of characters, as they stand in the table below.
const (
	space = ' '
	word  = 'a' // letter or digit, joined to runs
	other = '.' // visible, a token of its own; "_" is one of these
)

// ascii holds the class of each ASCII character, 16 to a row.
const ascii = "" +
	".........     .." +
	"............    " +
	" ..............." +
	"aaaaaaaaaa......" +
	".aaaaaaaaaaaaaaa" +
	"aaaaaaaaaaa....." +
	".aaaaaaaaaaaaaaa" +
	"aaaaaaaaaaa....."

// Count returns the number of tokens of text. It does not allocate and takes time O(len(text)). Text that is
// not UTF-8 is accepted: each stray byte is a token.
func Count(text string) int {
	n := 0
	for i := 0; ; n++ {
		var ok bool
		if _, i, ok = next(text, i); !ok {
			return n
		}
	}
}

// Pieces walks the tokens of text in order, each with the byte offset at which it starts. The pieces are
// substrings of text, so keeping one keeps text alive.
func Pieces(text string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		i := 0
		for {
			start, end, ok := next(text, i)
			if !ok || !yield(start, text[start:end]) {
				return
			}
			i = end
		}
	}
}

// next finds the first token of text at or after byte i; ok is false when only white space is left.
func next(text string, i int) (start, end int, ok bool) {
	for i < len(text) {
		class, width := classify(text, i)
		switch class {
		case space:
			i += width
			continue
		case other:
			return i, i + width, true
		}
		start = i
		i += width
		for run := 1; run < MaxPiece && i < len(text); run++ {
			class, width = classify(text, i)
			if class != word {
				break
			}
			i += width
		}
		return start, i, true
	}
	return i, i, false
}

// classify returns the class and the width in bytes of the character at byte i.
func classify(text string, i int) (class byte, width int) {
	if c := text[i]; c < utf8.RuneSelf {
		return ascii[c], 1
	}
	r, width := utf8.DecodeRuneInString(text[i:])
	switch {
	case unicode.IsLetter(r) || unicode.IsNumber(r):
		return word, width
	case unicode.IsSpace(r): // equals str.isspace outside ASCII
		return space, width
	}
	return other, width // also a stray byte, which decodes as U+FFFD of width 1
}
