package qdrant

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/zeebo/xxh3"
)

// Words makes sparse vectors of words, without a model: with the weights that a collection made by [Index.Create] gives
// to rare words, a search by them is BM25. A word is a run of letters and digits in lower case, as it stands; each Han,
// Hiragana and Katakana character is a word. The zero Words is the recommended setup.
//
// A document's value for a word that it holds n times is n·(k1+1) / (n + k1·(1-b + b·length/MeanLength)), a query's
// value is 1. The index of a word is half of its hash, so that in rare cases two words count as one.
type Words struct {
	// MeanLength is the number of words that a document of usual length has. 0: 256.
	MeanLength float64
}

// k1 and b are the usual constants of BM25.
const (
	k1         = 1.2
	b          = 0.75
	meanLength = 256
)

var _ SparseEmbedder = Words{}

// SparseDocuments returns the vectors of documents.
func (w Words) SparseDocuments(ctx context.Context, texts []string) ([]SparseVector, error) {
	mean := cmp.Or(w.MeanLength, meanLength)
	out := make([]SparseVector, len(texts))
	for i, text := range texts {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		counts, length := count(text)
		norm := k1 * (1 - b + b*float64(length)/mean)
		out[i] = sparse(counts, func(n int) float64 { return float64(n) * (k1 + 1) / (float64(n) + norm) })
	}
	return out, nil
}

// SparseQuery returns the vector of a question.
func (w Words) SparseQuery(ctx context.Context, text string) (SparseVector, error) {
	if ctx.Err() != nil {
		return SparseVector{}, context.Cause(ctx)
	}
	counts, _ := count(text)
	return sparse(counts, func(int) float64 { return 1 }), nil
}

// sparse returns the vector with the words' values, in the order of their indices.
func sparse(counts map[uint32]int, value func(n int) float64) SparseVector {
	v := SparseVector{Indices: slices.Sorted(maps.Keys(counts)), Values: make([]float32, len(counts))}
	for i, index := range v.Indices {
		v.Values[i] = float32(value(counts[index]))
	}
	return v
}

// count returns how often the words of a text occur, and how many there are.
func count(text string) (counts map[uint32]int, length int) {
	counts = map[uint32]int{}
	add := func(word string) {
		counts[uint32(xxh3.HashString(word))]++ //nolint:gosec // half of a hash
		length++
	}
	notWord := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) }
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), notWord) {
		start := 0
		for i, r := range word {
			if !unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) {
				continue
			}
			if start < i {
				add(word[start:i])
			}
			start = i + len(string(r))
			add(word[i:start])
		}
		if start < len(word) {
			add(word[start:])
		}
	}
	return counts, length
}
