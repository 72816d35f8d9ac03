package lexical_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/memory/internal/lexical"
)

func TestPhrases(t *testing.T) {
	of := func(text string) []uint32 { return lexical.AppendPhrases(nil, lexical.Terms(text)) }
	for text, want := range map[string]int{
		"": 0, "I drive": 0, "I drive a": 1, "I drive a Fiat": 2, "is it that I am": 0, "in March 2027": 0, "until 3 March at noon": 1,
		strings.Repeat("red green blue black ", 9): 4,
	} {
		if got := len(of(text)); got != want {
			t.Errorf("%q: %d phrases, want %d", text, got, want)
		}
	}
	one, other := of("I drive a Fiat."), of("That one broke, now I DRIVE a Skoda.")
	if !slices.ContainsFunc(one, func(p uint32) bool { return slices.Contains(other, p) }) {
		t.Error("no phrase in common")
	}
}

// Phrases are few, sorted and different, and none needs more than the terms.
func TestPhrasesBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms := rapid.SliceOf(rapid.StringMatching(`[a-z0-9]{1,3}`)).Draw(t, "terms")
		before := slices.Clone(terms)
		p := lexical.AppendPhrases(nil, terms)
		if len(p) > lexical.MaxPhrases || !slices.IsSorted(p) || len(slices.Compact(slices.Clone(p))) != len(p) || !slices.Equal(before, terms) {
			t.Fatalf("%v of %v", p, terms)
		}
	})
}

func TestFirstPerson(t *testing.T) {
	for text, want := range map[string]bool{
		"My dog is Rex": true, "We moved": true, "Greta's dog is Rex": false, "": false,
		"Mei lives here": false,
	} {
		if got := lexical.FirstPerson(lexical.Terms(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
