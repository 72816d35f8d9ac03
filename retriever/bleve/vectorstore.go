package bleve

import (
	"context"

	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/vectorstores"

	"github.com/ragpilot/ragpilot/retriever/internal/vectorstore"
)

var _ vectorstores.VectorStore = (*Store)(nil)

// AddDocuments stores documents, as langchaingo's vector stores do, and returns their IDs: the string at "id" of the
// metadata, or an ID made of text and metadata. So documents that are added again are replaced; two texts of one call
// with the same "id" are an error. [vectorstores.WithDeduplicater] leaves out the documents for which it is true, also in
// the IDs. Other options are errors (store.ErrBadOption). What is said of [Store.Upsert] holds here.
func (s *Store) AddDocuments(ctx context.Context, docs []schema.Document, options ...vectorstores.Option) ([]string, error) {
	return vectorstore.Add(ctx, s.backend, docs, options)
}

// SimilaritySearch returns the at most numDocuments documents that match the query's words best, best first, as
// langchaingo's documents with "id" and "version" in the metadata. BM25 has no scale of its own, so a score is given as a
// share of the best document's, from 0 to 1, and [vectorstores.WithScoreThreshold] compares with that share.
// [vectorstores.WithFilters] takes a store.Filter, a map of keys and the values wanted there, or a map in the form of
// Qdrant's filters (must, should, must_not). Other options are errors (store.ErrBadOption).
func (s *Store) SimilaritySearch(
	ctx context.Context, query string, numDocuments int, options ...vectorstores.Option,
) ([]schema.Document, error) {
	return vectorstore.Search(ctx, s.backend, query, numDocuments, options)
}

func (s *Store) backend(*vectorstores.Options) vectorstore.Backend {
	return vectorstore.Backend{
		Package: "bleve", Store: s, NoTenants: "open a store for each owner", NoEmbedder: "the store compares words, and has no vectors",
	}
}
