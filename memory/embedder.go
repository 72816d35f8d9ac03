package memory

import (
	"context"
	"sync/atomic"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/embed/minilm"
)

var defaultEmbedder atomic.Pointer[embed.Embedder]

// SetDefaultEmbedder makes e the embedder of the stores that are opened without [Config.Embedder] from now on, for the rest of
// the process; nil restores minilm.Default. It is for tests and examples of programs that are to run without the model. It is
// safe for concurrent use.
func SetDefaultEmbedder(e embed.Embedder) {
	if e == nil {
		e = minilm.Default()
	}
	defaultEmbedder.Store(&e)
}

// embedderOr returns the embedder, or the default one in place of nil.
func embedderOr(e embed.Embedder) embed.Embedder {
	if e != nil {
		return e
	}
	if set := defaultEmbedder.Load(); set != nil {
		return *set
	}
	return minilm.Default()
}

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
