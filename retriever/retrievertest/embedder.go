package retrievertest

import (
	"context"
	"math"
	"strings"
	"unicode"

	"github.com/zeebo/xxh3"
)

// Embedder makes vectors of words: each word of a text, in lower case, adds 1 to or takes 1 from three of Size numbers,
// and the sum is scaled to length 1. Texts that share words have similar vectors; nothing is known of their meaning. It has
// the two methods of langchaingo's embedders, always gives the same vectors, and is safe for concurrent use.
type Embedder struct {
	// Size is the length of the vectors; 0 means 256.
	Size int
}

// EmbedQuery returns the vector of a question.
func (e Embedder) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return e.vector(text), nil
}

// EmbedDocuments returns the vectors of texts.
func (e Embedder) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		out[i] = e.vector(text)
	}
	return out, nil
}

func (e Embedder) vector(text string) []float32 {
	size := e.Size
	if size == 0 {
		size = 256
	}
	sums := make([]float64, size)
	notWord := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), notWord) {
		h := xxh3.HashString(word)
		for range 3 { // 21 bits each: a sign and a place
			sums[(h>>1)&0xfffff%uint64(size)] += 1 - 2*float64(h&1)
			h >>= 21
		}
	}
	var squares float64
	for _, s := range sums {
		squares += s * s
	}
	out := make([]float32, size)
	if squares == 0 {
		out[0] = 1 // servers refuse, or cannot compare, a vector without a direction
		return out
	}
	for i, s := range sums {
		out[i] = float32(s / math.Sqrt(squares))
	}
	return out
}
