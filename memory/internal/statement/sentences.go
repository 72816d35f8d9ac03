package statement

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Marks that end a sentence. A semicolon ends one in Greek.
const (
	questionMarks = "?？؟\u037e՞፧⸮‽⁇⁈⁉"
	fullStops     = ".!…。！։।॥۔"
	wideMarks     = "。！？" // no space follows these
)

func closes(r rune) bool { return strings.ContainsRune(`"'”’»)]」』`, r) }

// Sentences cuts a text into its sentences, without the space around them. What stands between two back-quotes, an abbreviation or an
// address of the web is not cut.
func Sentences(text string) []string {
	var out []string
	greek := isGreek(text)
	start, quoted := 0, false
	cut := func(end int) {
		if s := strings.TrimSpace(text[start:end]); s != "" {
			out = append(out, s)
		}
		start = end
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		next := i + size
		switch {
		case r == '\n':
			quoted = false
			cut(next)
		case r == '`':
			quoted = !quoted
		case quoted:
		case strings.ContainsRune(questionMarks+fullStops, r) || r == ';' && greek:
			end := next // all marks, and what closes behind them
			for end < len(text) {
				more, n := utf8.DecodeRuneInString(text[end:])
				if !strings.ContainsRune(questionMarks+fullStops, more) && !closes(more) {
					break
				}
				end += n
			}
			if ends(text[start:end], text[i:end], text[end:], r) {
				cut(end)
			}
			next = end
		}
		i = next
	}
	cut(len(text))
	return out
}

// ends reports whether a sentence ends between said, whose marks begin with mark, and rest.
func ends(said, marks, rest string, mark rune) bool {
	if strings.ContainsRune(wideMarks, mark) || rest == "" {
		return true
	}
	after, _ := utf8.DecodeRuneInString(rest)
	if !unicode.IsSpace(after) {
		return unicode.Is(unicode.So, after)
	}
	following := strings.TrimLeft(rest, " \t\u00a0")
	next, _ := utf8.DecodeRuneInString(following)
	if mark == '.' && marks == "." {
		return !unicode.IsLower(next) && !abbreviated(said)
	}
	last, _ := utf8.DecodeLastRuneInString(marks)
	return !closes(last) || !unicode.IsLower(next) // a quotation within a sentence
}

var abbreviations = set(`mr mrs ms dr prof st no vs etc e.g i.e a.m p.m jr sr approx ca bzw z.b usw nr str art fig
	vol dept inc ltd mt ave sra dra`)

// abbreviated reports whether the last word, with its point, is an abbreviation or an initial.
func abbreviated(said string) bool {
	word := strings.TrimSuffix(said, ".")
	word = word[strings.LastIndexFunc(word, func(r rune) bool { return unicode.IsSpace(r) || r == '(' })+1:]
	return abbreviations[strings.ToLower(word)] || utf8.RuneCountInString(word) == 1 && word != "I" && !unicode.IsDigit(rune(word[0]))
}

// wordsOf returns the words of a text in lower case.
func wordsOf(lower string) []string {
	words := strings.FieldsFunc(lower, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && r != '\''
	})
	for i := range words {
		words[i] = strings.Trim(words[i], "'")
	}
	spoken := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	return slices.DeleteFunc(words, func(w string) bool { return !strings.ContainsFunc(w, spoken) })
}
