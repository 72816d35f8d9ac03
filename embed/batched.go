package embed

import (
	"context"
	"fmt"
	"slices"
)

// batched splits long lists of texts.
type batched struct {
	Embedder
	size int
}

var _ Named = batched{}

// Batched returns an embedder that gives inner at most size texts at a time, one batch after the other, for servers that
// bound their requests. A batch that fails, or that answers with another number of vectors than texts or with other
// lengths than the batches before, fails the call. size below 1 means 1. Safe for concurrent use if inner is.
func Batched(inner Embedder, size int) Embedder { return batched{inner, max(size, 1)} }

// Name returns inner's name.
func (b batched) Name() string { return NameOf(b.Embedder) }

// EmbedDocuments embeds batch by batch; an empty list sends nothing.
func (b batched) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	return b.each(ctx, texts, func(int) {})
}

// each embeds batch by batch, and calls report after each with the number of texts that are done.
func (b batched) each(ctx context.Context, texts []string, report func(done int)) ([][]float32, error) {
	vectors := make([][]float32, 0, len(texts))
	for batch := range slices.Chunk(texts, b.size) {
		found, err := documents(ctx, b.Embedder, batch)
		if err != nil {
			return nil, fmt.Errorf("texts from %d on: %w", len(vectors), err)
		}
		if len(vectors) > 0 && len(found[0]) != len(vectors[0]) {
			return nil, fmt.Errorf("embed: text %d: %w", len(vectors), &DimensionError{Want: len(vectors[0]), Got: len(found[0])})
		}
		vectors = append(vectors, found...)
		report(len(vectors))
	}
	return vectors, nil
}
