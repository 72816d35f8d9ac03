package memory

import (
	"context"

	"github.com/ragpilot/ragpilot/embed"
)

// Lexical is for [Config.Embedder] of a store that searches by words alone, without a model: by stems and how rare they are, and by
// words that are spelt alike. It finds what shares words with the question, and no synonyms. Memories are
// stored without vectors. [Local.Reembed] with another embedder makes them later.
var Lexical embed.Embedder = lexicalOnly{}

type lexicalOnly struct{}

// Name implements embed.Named.
func (lexicalOnly) Name() string { return "lexical" }

// EmbedDocuments returns no vectors: it fails with embed.ErrNotReady.
func (lexicalOnly) EmbedDocuments(context.Context, []string) ([][]float32, error) {
	return nil, embed.ErrNotReady
}

// EmbedQuery does likewise.
func (lexicalOnly) EmbedQuery(context.Context, string) ([]float32, error) {
	return nil, embed.ErrNotReady
}
