package embed

import (
	"context"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zeebo/xxh3"
)

// DefaultDimensions is the length of [NewHashed]'s vectors by default.
const DefaultDimensions = 384

// Weights of the features. A word is several trigrams: each of those counts less.
const (
	wordWeight    = 1.0
	pairWeight    = 0.5
	trigramWeight = 0.25
)

// Hashed is an embedder without a model: words, pairs of neighbouring words and the character trigrams of each
// word are hashed into the dimensions of a vector, each with a sign of its own so that collisions cancel on average
// (feature hashing), and the vector is brought to length 1. The same text has the same vector in every process. A
// text without letters and digits has a vector of zeros. Safe for concurrent use.
type Hashed struct {
	dimensions int
}

var (
	_ Embedder = Hashed{}
	_ Named    = Hashed{}
)

// NewHashed returns an embedder with vectors of that length; 0 or less: [DefaultDimensions].
func NewHashed(dimensions int) Hashed {
	if dimensions <= 0 {
		dimensions = DefaultDimensions
	}
	return Hashed{dimensions}
}

// Name has the length and the version of the hash, so that stores do not mix vectors.
func (h Hashed) Name() string { return fmt.Sprintf("hashed-v1-%d", h.size()) }

// EmbedDocuments embeds each text; it fails only if ctx has ended.
func (h Hashed) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		vectors[i] = h.vector(text)
	}
	return vectors, nil
}

// EmbedQuery embeds a question as if it were a document.
func (h Hashed) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return h.vector(text), nil
}

// size is the length of the vectors; the zero Hashed has the default.
func (h Hashed) size() int {
	if h.dimensions <= 0 {
		return DefaultDimensions
	}
	return h.dimensions
}

func (h Hashed) vector(text string) []float32 {
	v := make([]float32, h.size())
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	var b []byte // a feature with a mark of its kind: one buffer for all
	for i, word := range words {
		b = append(append(b[:0], "w:"...), word...)
		add(v, b, wordWeight)
		if i > 0 {
			b = append(append(append(append(b[:0], "p:"...), words[i-1]...), ' '), word...)
			add(v, b, pairWeight)
		}
		b = append(append(append(b[:0], "t:^"...), word...), '$')
		addTrigrams(v, b)
	}
	normalize(v)
	return v
}

// addTrigrams adds each three neighbouring characters of what follows "t:" in b. It writes over b.
func addTrigrams(v []float32, b []byte) {
	const kind = len("t:")
	first := kind
	_, n := utf8.DecodeRune(b[first:])
	second := first + n
	_, n = utf8.DecodeRune(b[second:])
	for third := second + n; third < len(b); {
		_, n = utf8.DecodeRune(b[third:])
		copy(b[first-kind:], "t:") // over characters that no later trigram has
		add(v, b[first-kind:third+n], trigramWeight)
		first, second, third = second, third, third+n
	}
}

// add puts a feature into its dimension, with the sign that a bit of its hash gives.
func add(v []float32, feature []byte, weight float32) {
	hash := xxh3.Hash(feature)
	if hash>>63 == 1 {
		weight = -weight
	}
	v[hash%uint64(len(v))] += weight
}

// normalize brings v to length 1; zeros stay zeros.
func normalize(v []float32) {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return
	}
	scale := float32(1 / math.Sqrt(sum))
	for i := range v {
		v[i] *= scale
	}
}
