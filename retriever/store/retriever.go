package store

import (
	"context"
	"maps"

	"github.com/tmc/langchaingo/schema"
)

// Keys of the metadata of a [Retriever]'s documents.
const (
	// KeyID holds the document's ID, a string.
	KeyID = "id"
	// KeyVersion holds the version of its text, a string.
	KeyVersion = "version"
)

// Retriever is a store as langchaingo sees it: it satisfies schema.Retriever. It is safe for concurrent use.
type Retriever struct {
	searcher Searcher
	query    Query
}

var _ schema.Retriever = Retriever{}

// NewRetriever returns a retriever that sends q, with the question as its text, to s. A q that makes no sense is
// reported by the first search.
func NewRetriever(s Searcher, q Query) Retriever { return Retriever{searcher: s, query: q} }

// GetRelevantDocuments does one search. Each document's Metadata holds that of the stored document, and [KeyID] and
// [KeyVersion] in place of what it may have had there.
func (r Retriever) GetRelevantDocuments(ctx context.Context, question string) ([]schema.Document, error) {
	q := r.query
	q.Text = question
	hits, err := r.searcher.Search(ctx, q)
	if err != nil {
		return nil, err
	}
	docs := make([]schema.Document, len(hits))
	for i, h := range hits {
		metadata := make(map[string]any, len(h.Metadata)+2)
		maps.Copy(metadata, h.Metadata)
		metadata[KeyID], metadata[KeyVersion] = h.ID, h.Version
		docs[i] = schema.Document{PageContent: h.Text, Metadata: metadata, Score: float32(h.Score)}
	}
	return docs, nil
}
