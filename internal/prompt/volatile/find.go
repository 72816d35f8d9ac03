package volatile

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind says what changes.
type Kind uint8

// The kinds.
const (
	Clock   Kind = iota + 1 // a time or a date, also of a day of the week alone
	ID                      // a random identifier: UUID, ULID, hash, key
	Number                  // a whole number that is neither of these
	Address                 // an e-mail address or an @name
)

// Span is where a volatile word, or several that belong together, stands in a text.
type Span struct {
	Kind     Kind
	From, To int // bytes
}

// Find returns the volatile spans of text, in order and without overlap. A span may be volatile in form only: a date in a
// document never changes. It takes time O(len(text)) and is safe for concurrent use.
func Find(text string) []Span {
	var spans []Span
	for i := 0; i < len(text); {
		from, to, dull := nextWord(text, i)
		if from < 0 {
			break
		}
		i = to
		if dull {
			continue
		}
		kind, end := classify(text, from, to)
		if kind == 0 {
			continue
		}
		i = end
		s := Span{Kind: kind, From: from, To: end}
		if n := len(spans); n > 0 && joins(text, spans[n-1], s) {
			spans[n-1].Kind, spans[n-1].To = Clock, end
			continue
		}
		spans = append(spans, s)
	}
	return keep(text, spans)
}

// keep leaves out names of months that have no number beside them: "may" and "march" are words, too.
func keep(text string, spans []Span) []Span {
	kept := spans[:0]
	for _, s := range spans {
		if s.Kind == Clock && monthAlone(text[s.From:s.To]) {
			continue
		}
		kept = append(kept, s)
	}
	return kept
}

// Classes of bytes.
const (
	other   = iota
	letter  // a to z
	upper   // A to Z
	digit   // 0 to 9
	innerOf // a sign that stands inside of times, identifiers and addresses
	wide    // of a character beyond ASCII
)

var classes = func() (c [256]uint8) {
	for i := range c {
		switch b := byte(i); {
		case b >= 'a' && b <= 'z':
			c[i] = letter
		case b >= 'A' && b <= 'Z':
			c[i] = upper
		case b >= '0' && b <= '9':
			c[i] = digit
		case b >= utf8.RuneSelf:
			c[i] = wide
		}
	}
	for _, b := range []byte(":.-_/+@") {
		c[b] = innerOf
	}
	return c
}()

// maxWord is the length in bytes up to which a run is one word, and maxSpan that of a time that goes on in the next word.
const (
	maxWord = 128
	maxSpan = 96
)

// nextWord returns the next run of characters of which a volatile word may consist: letters, digits, and signs between
// two of these. From is -1 at the end. Dull says that it is an ordinary word.
func nextWord(text string, i int) (from, to int, dull bool) {
	for i < len(text) && !starts(text, i) {
		i += width(text, i)
	}
	if i >= len(text) {
		return -1, -1, true
	}
	from = i
	for i < len(text) && classes[text[i]] == letter { // most words are nothing else
		i++
	}
	if i > from && (i == len(text) || classes[text[i]] == other) {
		return from, i, !maybeNamed(text[from], i-from)
	}
	limit := min(len(text), from+maxWord)
	beyond := false // the last character is not ASCII: scripts without spaces have numbers in the middle of a run
	plain := true
	for i < limit {
		c := classes[text[i]]
		if c == letter || c == upper {
			i++
			beyond = false
			continue
		}
		if c := text[i]; c == '/' && i > from && classes[text[i-1]] != digit {
			break // a path: each name of it is a word
		}
		w := width(text, i)
		if !starts(text, i) && (c != innerOf || !startsAt(text, i+w)) || beyond && c == digit {
			break
		}
		beyond = w > 1
		plain = plain && c == wide
		i += w
	}
	return from, i, plain && i-from < 16 && !maybeNamed(text[from], i-from) && !beyond
}

// maybeNamed reports whether the table of names has one with that first letter and length.
func maybeNamed(first byte, n int) bool {
	return n <= maxName && lengths[first|0x20]&(1<<n) != 0
}

func starts(text string, i int) bool {
	switch classes[text[i]] {
	case letter, upper, digit:
		return true
	case innerOf:
		return text[i] == '@' && startsAt(text, i+1)
	case wide:
		r, _ := utf8.DecodeRuneInString(text[i:])
		return unicode.IsLetter(r) || unicode.IsNumber(r)
	}
	return false
}

func startsAt(text string, i int) bool { return i < len(text) && text[i] != '@' && starts(text, i) }

func width(text string, i int) int {
	if text[i] < utf8.RuneSelf {
		return 1
	}
	_, w := utf8.DecodeRuneInString(text[i:])
	return w
}

// classify says what the word text[from:to] is, and where it ends: a word such as "4:14pm," may be read further or less far.
func classify(text string, from, to int) (Kind, int) {
	word := text[from:to]
	if at := strings.IndexByte(word, '@'); at >= 0 {
		if at == 0 && len(word) > 2 || at > 0 && strings.IndexByte(word[at:], '.') > 0 {
			return Address, to
		}
		return 0, to
	}
	if n := chineseDate(text, from); n > 0 {
		return Clock, from + n
	}
	if word[0] >= '0' && word[0] <= '9' {
		if n := dateTime(word); n > 0 && (n == len(word) || !starts(word, n)) {
			return Clock, from + n
		}
	}
	switch {
	case clockWord(word):
		return Clock, to
	case uuid(word), identifier(word), dotted(word):
		return ID, to
	}
	if id := afterPrefix(word); id > 0 {
		return ID, to
	}
	return number(word, from, to)
}

// number reads a whole number, also one with a letter or a sign behind it, such as "#12" or "v3".
func number(word string, from, to int) (Kind, int) {
	n := digits(word)
	if n == 0 {
		return 0, to
	}
	switch {
	case n == len(word):
		if unixTime(word) {
			return Clock, to
		}
		if n >= 15 {
			return ID, to
		}
		return Number, to
	case ordinal(word[n:]):
		return Number, to
	case word[n] == '/' || word[n] == '-' || word[n] == ':':
		return Number, from + n
	}
	return 0, to
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

func ordinal(s string) bool {
	switch s {
	case "st", "nd", "rd", "th":
		return true
	}
	return false
}

// joins reports whether two spans are one time: "Friday" and "27 November 2026", or a date and a time of day.
func joins(text string, a, b Span) bool {
	gap := text[a.To:b.From]
	if len(gap) > 8 || a.To-a.From > maxSpan || strings.ContainsAny(gap, "\n") || half(text[a.From:a.To]) {
		return false
	}
	if b.Kind == Number && a.Kind == Clock && gap == " +" && b.To-b.From == 4 {
		return true // the offset of a time zone
	}
	if strings.TrimSpace(gap) == "h" && a.Kind == Clock && b.Kind == Number {
		return true // 16 h 05
	}
	switch strings.ToLower(strings.Trim(gap, " ,.\t")) {
	case "", "at", "of", "the", "um", "den", "le", "à", "de", "el", "t", "|", "(", "/", "-", "+":
	default:
		return false
	}
	switch {
	case a.Kind == Clock && b.Kind == Clock:
		return true
	case a.Kind == Clock && b.Kind == Number:
		return clockWordEnd(text[a.From:a.To]) && len(strings.TrimRight(text[b.From:b.To], "stndrh")) <= 4
	case a.Kind == Number && b.Kind == Clock:
		return clockWord(text[b.From:b.To]) && len(strings.TrimRight(text[a.From:a.To], "stndrh")) <= 4
	}
	return false
}

// clockWordEnd reports whether a number may go on a time: "November" and 27, "November 27" and 2026.
func clockWordEnd(s string) bool {
	words := strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == ',' || r == '.' })
	return slices.ContainsFunc(words, clockWord)
}

// monthAlone reports whether a span is the name of a month and nothing else.
func monthAlone(s string) bool {
	return isMonth(s) || zone(s) || half(s)
}

// half reports whether a word names a half of the day.
func half(s string) bool { return strings.EqualFold(s, "am") || strings.EqualFold(s, "pm") }
