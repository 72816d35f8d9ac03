package bleve

import (
	"context"

	"github.com/tmc/langchaingo/schema"
)

// Retriever is an [Index] as langchaingo sees it: it satisfies schema.Retriever.
type Retriever struct {
	index *Index
	k     int
}

var _ schema.Retriever = Retriever{}

// Retriever returns a retriever of the k best blocks. A k below 1 is reported by its first use.
func (x *Index) Retriever(k int) Retriever { return Retriever{index: x, k: k} }

// GetRelevantDocuments does a [Index.Search]. Each document's Metadata holds "id", the block's ID, and
// "source", the path of its file.
func (r Retriever) GetRelevantDocuments(ctx context.Context, query string) ([]schema.Document, error) {
	blocks, err := r.index.Search(ctx, query, r.k)
	if err != nil {
		return nil, err
	}
	docs := make([]schema.Document, len(blocks))
	for i, b := range blocks {
		docs[i] = schema.Document{
			PageContent: b.Text,
			Metadata:    map[string]any{"id": b.ID, "source": source(b.ID)},
			Score:       float32(b.Score),
		}
	}
	return docs, nil
}
