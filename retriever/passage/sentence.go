package passage

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sentences walks the sentences of a text, each with the offset in bytes at which it begins. White space belongs to
// the sentence in front of it, so that the sentences together are the text, byte for byte.
//
// A sentence ends behind a mark that ends one in its script (. ? ! … 。！？ । ؟ and others), with the quotes,
// brackets and footnote numbers that close behind it, and at an empty line or in front of a line that begins a list
// item, a heading or a table row. A full stop does not end a sentence behind an abbreviation, an initial or a number of
// one or two digits, and no mark ends one in front of a small letter. Where that is not sure, the sentence goes on:
// one that is too long is never torn, one that is too short may be.
//
// What is decided at a place depends on at most [lookBack] bytes in front of it and on what follows up to the next letter.
// So a part of a text has the same sentences as the text, except at its ends.
func Sentences(text string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for at := 0; at < len(text); {
			end := nextStart(text, at)
			if !yield(at, text[at:end]) {
				return
			}
			at = end
		}
	}
}

// lookBack is the number of bytes in front of a mark that may decide what it means.
const lookBack = 24

// sentenceStart returns the first place at or behind from, and below to, where a sentence begins, and whether there is
// one. 0 is one.
func sentenceStart(text string, from, to int) (int, bool) {
	if from <= 0 {
		return 0, true
	}
	// The mark in front of a sentence may stand some white space and closing quotes before it.
	for at := runeStart(text, from-lookBack); ; {
		at = startBefore(text, at, min(to, len(text)))
		if at >= to || at >= len(text) {
			return 0, false
		}
		if at >= from {
			return at, true
		}
	}
}

// runeStart returns the first place at or in front of at where a character begins.
func runeStart(text string, at int) int {
	at = max(at, 0)
	for at > 0 && at < len(text) && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

// nextStart returns where the sentence behind the one at a place begins; len(text) if it is the last one. The mark
// that ends it is looked for from that place on.
func nextStart(text string, at int) int { return startBefore(text, at, len(text)) }

// startBefore is nextStart, or anything from to on if the next sentence does not begin in front of it.
func startBefore(text string, at, to int) int {
	for at < to {
		at = nextMark(text, at, to)
		if at >= to {
			break
		}
		r, size := utf8.DecodeRuneInString(text[at:])
		start, ok := 0, false
		switch {
		case r == '\n':
			start, ok = afterLine(text, at)
		case isStop(r):
			start, ok = afterStop(text, at, r)
		default:
			if start, ok = afterMark(text, at); !ok {
				at = behindRun(text, at) // for the others of a run of marks it is the same
				continue
			}
		}
		if ok {
			return start
		}
		at += size
	}
	return len(text)
}

// nextMark returns the first place from at on where a sentence may end, or one from to on if there is none in front of
// it.
func nextMark(text string, at, to int) int {
	for at < to {
		if c := text[at]; c < utf8.RuneSelf {
			if mayEnd(rune(c)) {
				return at
			}
			at++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[at:])
		if mayEnd(r) {
			return at
		}
		at += size
	}
	return at
}

func mayEnd(r rune) bool {
	if r < utf8.RuneSelf {
		return r == '.' || r == '?' || r == '!' || r == '\n'
	}
	return r == '…' || isStop(r)
}

// isStop reports whether a character ends a sentence of its script whatever follows, space or not.
func isStop(r rune) bool {
	switch r {
	case '。', '！', '？', '｡', '．', // Chinese, Japanese
		'।', '॥', // Devanagari and its relatives
		'؟', '۔', // Arabic, Urdu
		'።', '፧', '፨', // Ethiopic
		'։',      // Armenian
		'។', '៕', // Khmer
		'။',      // Burmese
		'\u037e': // Greek question mark
		return true
	}
	return false
}

// afterStop returns where the next sentence begins behind a stop. Closed speech that is quoted inside a sentence, as
// in 「はい。」と言った, does not end it.
func afterStop(text string, at int, stop rune) (int, bool) {
	end, closed := afterClosing(text, skipMarks(text, at))
	start := skipSpace(text, end)
	if start > end || start == len(text) {
		return start, true
	}
	next, _ := utf8.DecodeRuneInString(text[start:])
	if stop == '．' && unicode.IsDigit(next) {
		return 0, false
	}
	return start, !closed || !unicode.Is(unicode.Hiragana, next)
}

// afterMark returns where the next sentence begins behind a full stop, a question or exclamation mark, or an ellipsis.
func afterMark(text string, at int) (int, bool) {
	marks := skipMarks(text, at)
	end, _ := afterClosing(text, marks)
	start := skipSpace(text, end)
	if start == len(text) {
		return start, true
	}
	if start == end {
		return 0, false
	}
	if strings.Count(text[end:start], "\n") > 1 {
		return start, true
	}
	if marks == at+1 && text[at] == '.' && isShort(text[:at]) {
		return 0, false
	}
	if first := firstLetter(text[start:]); unicode.IsLower(first) {
		return 0, false
	}
	return start, true
}

// afterLine returns where the next sentence begins behind a line end: behind an empty line, and at what begins an item.
func afterLine(text string, at int) (int, bool) {
	start := skipSpace(text, at)
	if start == len(text) || strings.Count(text[at:start], "\n") > 1 {
		return start, true
	}
	return start, beginsItem(text[start:])
}

// beginsItem reports whether a line begins as a list item, a heading or a table row does.
func beginsItem(line string) bool {
	switch line[0] {
	case '#', '|', '>':
		return true
	case '-', '*', '+':
		return strings.HasPrefix(line[1:], " ")
	}
	if strings.HasPrefix(line, "•") || strings.HasPrefix(line, "·") {
		return true
	}
	digits := 0
	for digits < len(line) && digits < 3 && '0' <= line[digits] && line[digits] <= '9' {
		digits++
	}
	rest := line[digits:]
	return digits > 0 && len(rest) > 1 && (rest[0] == '.' || rest[0] == ')') && rest[1] == ' '
}

// skipMarks returns where a row of marks ends.
func skipMarks(text string, at int) int {
	return skip(text, at, func(r rune) bool { return r != '\n' && mayEnd(r) })
}

// behindRun returns where the run of marks ends that begins at a place, or where one of another kind is in it.
func behindRun(text string, at int) int {
	return skip(text, at, func(r rune) bool { return r != '\n' && mayEnd(r) && !isStop(r) })
}

// skip returns the first place from at on where a character is not like that.
func skip(text string, at int, like func(rune) bool) int {
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		if !like(r) {
			break
		}
		at += size
	}
	return at
}

// afterClosing returns where the closing quotes, brackets and footnote numbers behind a mark end, and whether there are
// any.
func afterClosing(text string, at int) (end int, closed bool) {
	from := at
	for at < len(text) {
		if n := footnote(text[at:]); n > 0 {
			at += n
			continue
		}
		r, size := utf8.DecodeRuneInString(text[at:])
		if !unicode.In(r, unicode.Pe, unicode.Pf) && r != '"' && r != '\'' && r != '*' && r != '_' {
			break
		}
		at += size
	}
	return at, at > from
}

// footnote returns the length of a number in brackets, such as [12], at the start of a text.
func footnote(text string) int {
	n := 1
	for n < len(text) && n < 5 && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	if n > 1 && text[0] == '[' && n < len(text) && text[n] == ']' {
		return n + 1
	}
	return 0
}

func skipSpace(text string, at int) int { return skip(text, at, unicode.IsSpace) }

// firstLetter returns the first character that is neither an opening quote nor a bracket nor a dash.
func firstLetter(text string) rune {
	for _, r := range text {
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) || !unicode.IsPunct(r) {
			return r
		}
	}
	return utf8.RuneError
}
