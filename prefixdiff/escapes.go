package prefixdiff

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// plainEscapes writes the characters of JSON's strings as themselves where another client may have written escapes: ü for \u00fc, < for
// \u003c, / for \/. Quotes, backslashes and control characters keep theirs.
func plainEscapes(json string) string {
	if !strings.Contains(json, `\u`) && !strings.Contains(json, `\/`) {
		return json
	}
	var b strings.Builder
	b.Grow(len(json))
	for i := 0; i < len(json); {
		if json[i] != '\\' || i+1 >= len(json) {
			b.WriteByte(json[i])
			i++
			continue
		}
		switch json[i+1] {
		case '/':
			b.WriteByte('/')
			i += 2
		case 'u':
			r, n := escaped(json[i:])
			if n == 0 || r < ' ' || r == '"' || r == '\\' || r == utf8.RuneError {
				n = 2
				b.WriteString(json[i : i+2])
			} else {
				b.WriteRune(r)
			}
			i += n
		default:
			b.WriteString(json[i : i+2])
			i += 2
		}
	}
	return b.String()
}

// escaped reads the character that an escape such as \u00fc, or a pair of them, stands for; 0 bytes: there is none.
func escaped(s string) (r rune, n int) {
	unit := func(s string) (rune, bool) {
		if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
			return 0, false
		}
		v, err := strconv.ParseUint(s[2:6], 16, 16)
		return rune(v), err == nil
	}
	first, ok := unit(s)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(first) {
		return first, 6
	}
	second, ok := unit(s[6:])
	if !ok {
		return 0, 0
	}
	return utf16.DecodeRune(first, second), 12
}

// blankEscapes replaces the escapes of white space by white space of the same length, so that words of JSON are those of its strings.
func blankEscapes(json string) string {
	if !strings.Contains(json, `\n`) && !strings.Contains(json, `\t`) && !strings.Contains(json, `\r`) {
		return json
	}
	b := []byte(json)
	for i := 0; i+1 < len(b); i++ {
		if b[i] != '\\' {
			continue
		}
		switch b[i+1] {
		case 'n':
			b[i], b[i+1] = '\n', '\n'
		case 't':
			b[i], b[i+1] = '\t', '\t'
		case 'r':
			b[i], b[i+1] = '\r', '\r'
		}
		i++
	}
	return string(b)
}
