package eval

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Match is how well a generated text answers a row.
type Match struct {
	// Exact: the text, its first line or its first sentence is an accepted answer, alone or behind the row's lead, after
	// [Normalise].
	Exact bool `json:"exact"`
	// Contains: an accepted answer stands in the text, word by word.
	Contains bool `json:"contains"`
	// F1 is the best overlap of words with an accepted answer, as SQuAD measures it: of the first sentence without the row's lead,
	// or where there is no lead of the first line.
	F1 float64 `json:"f1"`
}

// MatchText compares a generated text with a row's answers.
func MatchText(text string, row *Row) Match {
	var m Match
	text = strings.TrimSpace(text)
	line, _, _ := strings.Cut(text, "\n")
	first := line
	lead := Normalise(row.Lead)
	whole, line, sentence := Normalise(text), Normalise(line), Normalise(firstSentence(line))
	short := strings.TrimSpace(strings.TrimPrefix(sentence+" ", lead+" "))
	if lead == "" {
		short = line
	}
	for _, a := range row.Answers {
		want := Normalise(a)
		m.Exact = m.Exact || begins(first, a) || row.Lead != "" && begins(first, row.Lead+" "+a)
		for _, got := range []string{whole, line, sentence} {
			m.Exact = m.Exact || got == want || lead != "" && got == lead+" "+want
		}
		m.Contains = m.Contains || strings.Contains(" "+whole+" ", " "+want+" ")
		m.F1 = math.Max(m.F1, overlap(short, want))
	}
	return m
}

// firstSentence cuts a text behind its first full stop, exclamation or question mark that a space follows.
func firstSentence(text string) string {
	for i := 0; i+1 < len(text); i++ {
		if strings.IndexByte(".!?", text[i]) >= 0 && text[i+1] == ' ' {
			return text[:i+1]
		}
	}
	return text
}

// begins reports whether a line begins with a whole sentence, or with the sentence's words and a stop: answers may have stops in them.
func begins(line, sentence string) bool {
	if sentence == "" || len(line) < len(sentence) || !strings.EqualFold(line[:len(sentence)], sentence) {
		return false
	}
	rest := line[len(sentence):]
	if rest != "" && strings.IndexByte(".!?", rest[0]) >= 0 {
		rest = rest[1:]
	} else if strings.IndexByte(".!?", sentence[len(sentence)-1]) < 0 {
		return false
	}
	return rest == "" || rest[0] == ' '
}

// overlap is the harmonic mean of precision and recall of normalised words, each counted as often as it occurs.
func overlap(got, want string) float64 {
	if got == "" || want == "" {
		if got == want {
			return 1
		}
		return 0
	}
	g, w := strings.Fields(got), strings.Fields(want)
	left := map[string]int{}
	for _, x := range w {
		left[x]++
	}
	same := 0
	for _, x := range g {
		if left[x] > 0 {
			left[x]--
			same++
		}
	}
	if same == 0 {
		return 0
	}
	precision, recall := float64(same)/float64(len(g)), float64(same)/float64(len(w))
	return 2 * precision * recall / (precision + recall)
}

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
