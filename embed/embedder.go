package embed

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// Embedder turns texts into vectors. Both methods give vectors of one length; an implementation must be safe for
// concurrent use.
type Embedder interface {
	// EmbedDocuments returns one vector for each text, in their order.
	EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error)
	// EmbedQuery returns the vector of a question. Models that embed questions in another way than documents do it here.
	EmbedQuery(ctx context.Context, text string) ([]float32, error)
}

// Named is implemented by embedders that know their name, for example the model's. Stores record it, so that vectors of
// two embedders are not mixed although they have one length.
type Named interface {
	Name() string
}

// NameOf returns the embedder's name, or "" if it has none.
func NameOf(e Embedder) string {
	if n, ok := e.(Named); ok {
		return n.Name()
	}
	return ""
}

// ErrDimension is wrapped by every [DimensionError].
var ErrDimension = errors.New("vectors of different lengths")

// ErrCount says that an embedder gave another number of vectors than it was given texts.
var ErrCount = errors.New("another number of vectors than texts")

// ErrNotReady is wrapped by errors of an embedder whose model is not there yet: later the same call may work.
var ErrNotReady = errors.New("the embedding model is not ready")

// DimensionError says that a vector has another length than those it is compared with.
type DimensionError struct {
	Want, Got int
}

// Error names both lengths.
func (e *DimensionError) Error() string {
	return fmt.Sprintf("vector of %d dimensions, want %d", e.Got, e.Want)
}

// Unwrap returns [ErrDimension].
func (e *DimensionError) Unwrap() error { return ErrDimension }

// Cosine returns the cosine of the angle between two vectors, from −1 to 1, and 0 if one of them is all zeros or
// not finite. Another length is a [DimensionError].
func Cosine(a, b []float32) (float64, error) {
	if len(a) != len(b) {
		return 0, &DimensionError{Want: len(a), Got: len(b)}
	}
	var dot, aa, bb float64
	for i, x := range a {
		y := float64(b[i])
		dot += float64(x) * y
		aa += float64(x) * float64(x)
		bb += y * y
	}
	cos := dot / math.Sqrt(aa*bb)
	if math.IsNaN(cos) {
		return 0, nil
	}
	return max(-1, min(1, cos)), nil
}

// documents asks e and checks that it gave one vector for each text, all of one length.
func documents(ctx context.Context, e Embedder, texts []string) ([][]float32, error) {
	vectors, err := e.EmbedDocuments(ctx, texts)
	if err != nil {
		return nil, err
	}
	if len(vectors) != len(texts) {
		return nil, fmt.Errorf("embed: %w: %d and %d", ErrCount, len(vectors), len(texts))
	}
	for i, v := range vectors {
		if len(v) == 0 || len(v) != len(vectors[0]) {
			return nil, fmt.Errorf("embed: text %d: %w", i, &DimensionError{Want: len(vectors[0]), Got: len(v)})
		}
	}
	return vectors, nil
}
