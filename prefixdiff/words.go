package prefixdiff

import (
	"unicode"
	"unicode/utf8"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/internal/prompt/volatile"
)

// word stands for a word of a text: its class in the lowest bits, a bit that says whether one space stands in front of it, and a
// keyed hash of it.
type word uint32

const (
	classBits = 4
	classMask = 1<<classBits - 1
	spaceBit  = 1 << classBits
	hashShift = classBits + 1
)

// class is what a word is.
type class uint8

const (
	plain     class = iota
	capital         // begins with a capital letter
	digits          // begins with a digit, and is no whole number
	sign            // anything visible that is no letter or digit
	blank           // white space, other than one space between words
	ideograph       // of a script without spaces: each character is a word
	clock
	random
	number
	address
)

func (w word) class() class { return class(w & classMask) }

// same reports whether two words are equal but for the white space in front of them.
func (w word) same(v word) bool { return w&^spaceBit == v&^spaceBit }

// volatile reports whether a word changes by its nature.
func (c class) volatile() bool { return c >= clock }

// splitter cuts texts into words, hashed with a key.
type splitter struct{ seed uint64 }

// split returns the words of text, and where each begins. The second slice has one more element, the length of the text.
func (s splitter) split(text string, words []word) ([]word, []int32) {
	at := make([]int32, 0, cap(words)+1)
	spans := volatile.Find(text)
	spaced := false
	add := func(c class, from, to int) {
		w := word(s.hash(text[from:to])<<hashShift) | word(c)
		if spaced {
			w |= spaceBit
		}
		spaced = false
		words, at = append(words, w), append(at, int32(from))
	}
	for i := 0; i < len(text); {
		if len(spans) > 0 && i >= spans[0].From {
			if i == spans[0].From {
				add(classOf(spans[0].Kind), i, spans[0].To)
				i = spans[0].To
			}
			spans = spans[1:]
			continue
		}
		end := len(text)
		if len(spans) > 0 {
			end = spans[0].From
		}
		if text[i] == ' ' && !spaced && i > 0 && i+1 < end && letters[text[i+1]] != 0 {
			spaced = true
			i++
			continue
		}
		c, n := next(text[i:end])
		if c == blank && n == 1 && text[i] == ' ' && !spaced && i > 0 && i+1 < len(text) {
			spaced = true
			i++
			continue
		}
		add(c, i, i+n)
		i += n
	}
	return words, append(at, int32(len(text)))
}

func classOf(k volatile.Kind) class {
	switch k {
	case volatile.Clock:
		return clock
	case volatile.ID:
		return random
	case volatile.Number:
		return number
	}
	return address
}

func (s splitter) hash(text string) uint64 { return xxh3.HashStringSeed(text, s.seed) }

// letters are the bytes of words: 1 for small letters, 2 for capital ones, 3 for digits.
var letters = func() (l [256]uint8) {
	for c := 'a'; c <= 'z'; c++ {
		l[c], l[c-'a'+'A'] = 1, 2
	}
	for c := '0'; c <= '9'; c++ {
		l[c] = 3
	}
	l['_'] = 1
	return l
}()

// next returns the class and the length of the word at the beginning of text.
func next(text string) (class, int) {
	n := 0
	for n < len(text) && letters[text[n]] != 0 {
		n++
	}
	if n > 0 && (n == len(text) || text[n] < utf8.RuneSelf) {
		return [...]class{sign, plain, capital, digits}[letters[text[0]]], n
	}
	return nextRune(text)
}

// nextRune is next for text that may begin with any character.
func nextRune(text string) (class, int) {
	r, n := utf8.DecodeRuneInString(text)
	switch {
	case isBlank(r):
		for n < len(text) {
			r, w := utf8.DecodeRuneInString(text[n:])
			if !isBlank(r) {
				break
			}
			n += w
		}
		return blank, n
	case r >= 0x2E80 && !isLetter(r):
		return sign, n
	case r >= 0x2E80 && !unicode.Is(unicode.Hangul, r):
		return ideograph, n
	}
	c := plain
	switch {
	case r >= '0' && r <= '9':
		c = digits
	case unicode.IsUpper(r):
		c = capital
	case !isLetter(r):
		return sign, n
	}
	for n < len(text) {
		r, w := utf8.DecodeRuneInString(text[n:])
		if !isLetter(r) || r >= 0x2E80 && !unicode.Is(unicode.Hangul, r) {
			break
		}
		n += w
	}
	return c, n
}

func isLetter(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z' || r == '_'
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r)
}

// isBlank reports whether a character is white space, also of those that have no width.
func isBlank(r rune) bool {
	switch r {
	case '\u200b', '\ufeff', '\u2060', '\u200c', '\u200d':
		return true
	}
	return unicode.IsSpace(r)
}
