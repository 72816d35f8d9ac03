package embed

import (
	"context"
	"fmt"
)

// checked refuses vectors of another length.
type checked struct {
	Embedder
	dimensions int
}

var _ Named = checked{}

// Checked returns an embedder that gives inner's vectors if they have that length, and a [DimensionError] otherwise. It
// notices a server that was given another model. Safe for concurrent use if inner is.
func Checked(inner Embedder, dimensions int) Embedder { return checked{inner, dimensions} }

// Name returns inner's name.
func (c checked) Name() string { return NameOf(c.Embedder) }

// EmbedDocuments checks each vector.
func (c checked) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	vectors, err := documents(ctx, c.Embedder, texts)
	if err != nil {
		return nil, err
	}
	if len(vectors) > 0 && len(vectors[0]) != c.dimensions {
		return nil, fmt.Errorf("embed: %w", &DimensionError{Want: c.dimensions, Got: len(vectors[0])})
	}
	return vectors, nil
}

// EmbedQuery checks the vector.
func (c checked) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	v, err := c.Embedder.EmbedQuery(ctx, text)
	if err != nil {
		return nil, err
	}
	if len(v) != c.dimensions {
		return nil, fmt.Errorf("embed: %w", &DimensionError{Want: c.dimensions, Got: len(v)})
	}
	return v, nil
}
