package minilm

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// cleaner splits text into words as BERT does: control characters are dropped; white space, punctuation and Chinese
// characters separate, and the latter two are words of their own. Words lose accents and capitals if it says so.
type cleaner struct{ accents, lower bool }

// words calls yield for each word, until it returns false.
func (c cleaner) words(text string, yield func(word string) bool) {
	var word []byte
	plain := true // word is ASCII
	flush := func() bool {
		if len(word) == 0 {
			return true
		}
		more := splitPunctuation(c.normal(word, plain), yield)
		word, plain = word[:0], true
		return more
	}
	for _, r := range text {
		switch {
		case isDropped(r):
		case unicode.IsSpace(r):
			if !flush() {
				return
			}
		case isChinese(r):
			if !flush() || !yield(c.normal(utf8.AppendRune(nil, r), false)) {
				return
			}
		default:
			word = utf8.AppendRune(word, r)
			plain = plain && r < utf8.RuneSelf
		}
	}
	flush()
}

// normal takes accents and capitals off a word.
func (c cleaner) normal(word []byte, plain bool) string {
	text := string(word)
	if !plain && c.accents {
		text = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Mn, r) {
				return -1
			}
			return r
		}, norm.NFD.String(text))
	}
	if c.lower {
		text = strings.ToLower(text)
	}
	return text
}

// splitPunctuation yields the parts of a word between punctuation, and each punctuation character.
func splitPunctuation(word string, yield func(string) bool) bool {
	start := 0
	for i, r := range word {
		if !isPunctuation(r) {
			continue
		}
		if start < i && !yield(word[start:i]) {
			return false
		}
		start = i + utf8.RuneLen(r)
		if !yield(word[i:start]) {
			return false
		}
	}
	return start == len(word) || yield(word[start:])
}

// isDropped reports control, format and private characters, and what is no character.
func isDropped(r rune) bool {
	switch {
	case r == '\t' || r == '\n' || r == '\r':
		return false
	case r < utf8.RuneSelf:
		return r < ' ' || r == 0x7f
	}
	return r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co)
}

// isPunctuation counts all of ASCII that is neither letter nor digit, as BERT does.
func isPunctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return '!' <= r && r <= '/' || ':' <= r && r <= '@' || '[' <= r && r <= '`' || '{' <= r && r <= '~'
	}
	return unicode.IsPunct(r)
}

// isChinese reports the blocks of ideographs that BERT splits character by character. Hangul, kana and the rest of
// Japanese and Korean are words like those of other languages.
func isChinese(r rune) bool {
	if r < 0x3400 {
		return false
	}
	return r <= 0x4dbf || 0x4e00 <= r && r <= 0x9fff || 0xf900 <= r && r <= 0xfaff ||
		0x20000 <= r && r <= 0x2a6df || 0x2a700 <= r && r <= 0x2b81f || 0x2b920 <= r && r <= 0x2ceaf || 0x2f800 <= r && r <= 0x2fa1f
}
