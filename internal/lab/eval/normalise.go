package eval

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Normalise makes answers comparable as SQuAD's evaluation does (Rajpurkar et al. 2016): lower case, without ASCII
// punctuation, without the articles a, an and the, words separated by single spaces.
func Normalise(text string) string {
	text = strings.Map(func(r rune) rune {
		if strings.ContainsRune(punctuation, r) {
			return -1
		}
		return r
	}, strings.ToLower(text))
	return strings.Join(strings.Fields(withoutArticles(text)), " ")
}

const punctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

// withoutArticles puts a space in place of each word, in the sense of regular expressions, that is an article.
func withoutArticles(text string) string {
	var b strings.Builder
	word := 0 // where the current word begins in text
	flush := func(end int) {
		switch w := text[word:end]; w {
		case "a", "an", "the":
			b.WriteByte(' ')
		default:
			b.WriteString(w)
		}
	}
	for i, r := range text {
		if unicode.IsLetter(r) || unicode.IsNumber(r) {
			continue
		}
		flush(i)
		b.WriteRune(r)
		word = i + utf8.RuneLen(r)
	}
	flush(len(text))
	return b.String()
}
