package lexical

import (
	"slices"
	"strings"
	"unicode"

	"github.com/zeebo/xxh3"
)

const (
	// phraseTerms is how many terms a phrase has.
	phraseTerms = 3
	// MaxPhrases is how many phrases of a text are kept: those of a long text are found in many others.
	MaxPhrases = 64
)

// AppendPhrases appends the first phrases of a text as sorted hashes without repeats: runs of three terms that are not all English stop
// words and have no digit. Two statements that share one are worded alike, such as "I drive a Fiat" and "That one broke, now I drive a
// Skoda". A date or an amount in common says nothing.
func AppendPhrases(to []uint32, terms []string) []uint32 {
	begin := len(to)
	var run []byte
	content, number := 0, 0 // behind the last term that is no stop word, and behind the last that has a digit
	for i, term := range terms {
		if !stopWords[term] {
			content = i + 1
		}
		if strings.ContainsFunc(term, unicode.IsDigit) {
			number = i + 1
		}
		from := i + 1 - phraseTerms
		if from < 0 || content <= from || number > from {
			continue
		}
		run = run[:0]
		for _, t := range terms[from : i+1] {
			run = append(append(run, t...), ' ')
		}
		to = append(to, uint32(xxh3.Hash(run))) //nolint:gosec // a part of the hash is enough
		if len(to)-begin == MaxPhrases {
			break
		}
	}
	slices.Sort(to[begin:])
	return to[:begin+len(slices.Compact(to[begin:]))]
}

// firstPerson are the English words by which speakers mean themselves.
var firstPerson = map[string]bool{
	"i": true, "me": true, "my": true, "mine": true, "myself": true,
	"we": true, "us": true, "our": true, "ours": true, "ourselves": true,
}

// FirstPerson reports whether a text is about its speaker.
func FirstPerson(terms []string) bool {
	return slices.ContainsFunc(terms, func(term string) bool { return firstPerson[term] })
}
