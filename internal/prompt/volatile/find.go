package volatile

import (
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
		from, to := nextWord(text, i)
		if from < 0 {
			break
		}
		i = to
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

// nextWord returns the next run of characters of which a volatile word may consist: letters, digits, and signs between
// two of these. From is -1 at the end.
func nextWord(text string, i int) (from, to int) {
	for i < len(text) && !starts(text, i) {
		i += width(text, i)
	}
	if i >= len(text) {
		return -1, -1
	}
	from = i
	wide := false // the last character is not ASCII: scripts without spaces have numbers in the middle of a run
	for i < len(text) {
		w := width(text, i)
		if !starts(text, i) && (!inner(text[i]) || !startsAt(text, i+w)) || wide && text[i] >= '0' && text[i] <= '9' {
			break
		}
		wide = w > 1
		i += w
	}
	return from, i
}

// inner are the signs that stand inside of times, identifiers and addresses.
func inner(c byte) bool {
	switch c {
	case ':', '.', '-', '_', '/', '+', '@':
		return true
	}
	return false
}

func starts(text string, i int) bool {
	c := text[i]
	if c < utf8.RuneSelf {
		return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '@' && startsAt(text, i+1)
	}
	r, _ := utf8.DecodeRuneInString(text[i:])
	return unicode.IsLetter(r) || unicode.IsNumber(r)
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
	case uuid(word), identifier(word):
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
	if len(gap) > 8 || strings.ContainsAny(gap, "\n") || half(text[a.From:a.To]) {
		return false
	}
	if b.Kind == Number && a.Kind == Clock && gap == " +" && b.To-b.From == 4 {
		return true // the offset of a time zone
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
	for _, w := range words {
		if clockWord(w) {
			return true
		}
	}
	return false
}

// monthAlone reports whether a span is the name of a month and nothing else.
func monthAlone(s string) bool {
	return isMonth(s) || zone(s) || half(s)
}

// half reports whether a word names a half of the day.
func half(s string) bool { return strings.EqualFold(s, "am") || strings.EqualFold(s, "pm") }
