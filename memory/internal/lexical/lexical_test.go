package lexical_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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

func TestStems(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                    nil,
		"What is it that I don't have?":       nil,
		"Ana's allergies: peanuts":            {"ana", "allergi", "peanut"},
		"She was running to the vaccinations": {"run", "vaccin"},
		"Meine Schwester wohnt in Köln":       {"mein", "schwester", "wohnt", "koln"},
		"日本語":                                 {"日本", "本語"},
	} {
		if diff := cmp.Diff(want, lexical.Stems(text), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func FuzzStems(f *testing.F) {
	f.Add("Ana's 3 CAFÉS, 日本語!")
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range lexical.Stems(text) {
			if s == "" {
				t.Fatalf("an empty stem of %q", text)
			}
		}
	})
}
