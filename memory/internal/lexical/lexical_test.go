package lexical_test

import (
	"math"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/memory/internal/lexical"
)

func TestTerms(t *testing.T) {
	for text, want := range map[string][]string{
		"":                       nil,
		"!? --":                  nil,
		"Ana's 3 CAFÉS":          {"ana", "s", "3", "cafes"},
		"na\u00efve nai\u0308ve": {"naive", "naive"},
		"日本語 メモ":                 {"日本", "本語", "メモ"},
		"東京tower木":               {"東京", "tower", "木"},
		"ﬁne ½":                  {"fine", "1", "2"},
		"a_b\"c\" OR NEAR(x*)":   {"a", "b", "c", "or", "near", "x"},

		strings.Repeat("é", 1000) + " b": {strings.Repeat("e", lexical.MaxRunes), "b"},
	} {
		if diff := cmp.Diff(want, lexical.Terms(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

// Terms hold letters and digits only, which is what the full-text indexes of backends rely on.
func TestTermsAreWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, term := range lexical.Terms(rapid.String().Draw(t, "text")) {
			if term == "" || strings.ContainsFunc(term, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
				t.Fatalf("term %q", term)
			}
		}
	})
}

// The figures are worked out by hand: N = 2, 4 terms on average.
func TestScores(t *testing.T) {
	corpus := lexical.Corpus{Texts: 2, Terms: 8}
	scores := corpus.Scores([]string{"tea", "tea", "none"}, [][]string{{"tea", "tea", "a", "b"}})
	idf := math.Ln2 // ln(1 + (2−1+½)/(1+½))
	if want := idf * 2 * 2.2 / (2 + 1.2); math.Abs(scores[0]-want) > 1e-12 {
		t.Errorf("score %v, want %v", scores[0], want)
	}
	if scores := (lexical.Corpus{}).Scores([]string{"tea"}, nil); len(scores) != 0 {
		t.Errorf("nothing scored %v", scores)
	}
}

// A text scores if and only if it has a word of the query.
func TestScoresProperties(t *testing.T) {
	word := rapid.SampledFrom([]string{"a", "b", "c", "d"})
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.SliceOfN(word, 1, 6), 1, 6).Draw(t, "texts")
		query := rapid.SliceOfN(word, 1, 3).Draw(t, "query")
		total := 0
		for _, text := range texts {
			total += len(text)
		}
		for i, score := range (lexical.Corpus{Texts: len(texts), Terms: total}).Scores(query, texts) {
			has := false
			for _, term := range texts[i] {
				has = has || strings.Contains(strings.Join(query, ""), term)
			}
			if has != (score > 0) || math.IsNaN(score) {
				t.Fatalf("%q in %q scores %v", query, texts[i], score)
			}
		}
	})
}

func TestDistinct(t *testing.T) {
	if diff := cmp.Diff([]string{"b", "a"}, lexical.Distinct([]string{"b", "a", "b"})); diff != "" {
		t.Error(diff)
	}
}
