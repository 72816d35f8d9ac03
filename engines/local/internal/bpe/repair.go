package bpe

import (
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
)

// repair returns raw with U+FFFD in the place of what is no UTF-8: one for every longest piece that could have begun a character, as the
// Unicode standard recommends. The beginning of a character at the very end is returned as rest.
func repair(raw []byte) (text string, rest []byte) {
	for i := len(raw) - 1; i >= max(0, len(raw)-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(raw[i]) {
			if !utf8.FullRune(raw[i:]) {
				raw, rest = raw[:i], raw[i:]
			}
			break
		}
	}
	fixed, err := unicode.UTF8.NewDecoder().Bytes(raw)
	if err != nil {
		panic(err) // it has an answer for all bytes
	}
	return string(fixed), rest
}

// end returns what the beginning of a character at the end of a text stands for.
func end(rest []byte) string {
	if len(rest) == 0 {
		return ""
	}
	return string(utf8.RuneError)
}
