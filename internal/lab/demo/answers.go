package demo

import (
	"slices"
	"strings"
	"unicode"
)

// Right reports whether an answer holds the known one: both are normalised to their words (runs of letters and digits, in lower case),
// and the known answer's words stand in the answer in a row.
func Right(answer, known string) bool {
	said, want := words(answer), words(known)
	for i := 0; len(want) > 0 && i+len(want) <= len(said); i++ {
		if slices.Equal(said[i:i+len(want)], want) {
			return true
		}
	}
	return false
}

func words(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// sentenceEnds are what an answer of one sentence is stopped at.
func sentenceEnds() []string { return []string{"\n", ". ", "! ", "? "} }

// firstSentence returns the first sentence of a text, with a full stop. It knows no abbreviations: a full stop with a space behind it
// ends the sentence.
func firstSentence(text string) string {
	text = strings.TrimSpace(text)
	for _, end := range sentenceEnds() {
		if i := strings.Index(text, end); i >= 0 {
			text = strings.TrimSpace(text[:i+1])
		}
	}
	if text != "" && !strings.ContainsAny(text[len(text)-1:], ".!?") {
		text += "."
	}
	return text
}

// rightAnswers counts the right answers of a side, and the questions with a known answer.
func (r *Result) rightAnswers(side []Sent) (right, known int) {
	for i, q := range r.Questions {
		if q.Answer == "" {
			continue
		}
		known++
		if Right(side[i].Answer, q.Answer) {
			right++
		}
	}
	return right, known
}
