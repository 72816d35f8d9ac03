package qdrant

import (
	"context"

	api "github.com/qdrant/go-client/qdrant"
	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/vectorstores"

	"github.com/ragpilot/ragpilot/retriever/internal/vectorstore"
	"github.com/ragpilot/ragpilot/retriever/store"
)

var _ vectorstores.VectorStore = (*Index)(nil)

// AddDocuments stores documents, as langchaingo's vector stores do, and returns their IDs: the string at "id" of the
// metadata, or an ID made of text and metadata. So documents that are added again are replaced; two texts of one call
// with the same "id" are an error. The collection must exist, see [Index.Create]. What is said of [Index.Upsert] holds
// here.
//
// [vectorstores.WithNameSpace] is the tenant of a collection with tenants, and may else be the collection's name.
// [vectorstores.WithEmbedder] replaces Options.Embedder. [vectorstores.WithDeduplicater] leaves out the documents for
// which it is true, also in the IDs. Other options are errors (store.ErrBadOption).
func (x *Index) AddDocuments(ctx context.Context, docs []schema.Document, options ...vectorstores.Option) ([]string, error) {
	return vectorstore.Add(ctx, x.backend, docs, options)
}

// SimilaritySearch returns the at most numDocuments documents that fit best, best first, as langchaingo's documents with
// "id" and "version" in the metadata. Scores of store.Dense are the server's similarities, by cosine from -1 to 1 in
// collections that [Index.Create] made. Those of store.Lexical and store.Hybrid have no scale of their own, and are given
// as shares of the best document's, from 0 to 1. [vectorstores.WithScoreThreshold] compares with these scores.
//
// [vectorstores.WithFilters] takes a store.Filter, a filter of the client, a map of keys and the values wanted there, or
// the must, should and must_not of Qdrant's REST interface with match and range. [vectorstores.WithNameSpace] and
// [vectorstores.WithEmbedder] are as in [Index.AddDocuments]; the latter is an error where Options.Mode is
// store.Lexical. Other options are errors (store.ErrBadOption).
func (x *Index) SimilaritySearch(
	ctx context.Context, query string, numDocuments int, options ...vectorstores.Option,
) ([]schema.Document, error) {
	return vectorstore.Search(ctx, x.backend, query, numDocuments, options)
}

func (x *Index) backend(o *vectorstores.Options) vectorstore.Backend {
	y := *x // a connection, and the options of one call
	b := vectorstore.Backend{
		Package: "qdrant", Store: &y, Tenants: x.opts.Layout.tenants(), Name: x.opts.Collection,
		NoTenants: "set Options.Layout.Tenant",
		Embedder:  &y.opts.Embedder, NoEmbedder: "the collection is opened without dense vectors: set Options.Embedder",
		Words: x.opts.Mode == store.Lexical, Similarities: x.opts.Mode == store.Dense,
	}
	if f, own := o.Filters.(*api.Filter); own {
		y.filter, o.Filters = both(x.filter, f), nil
	}
	return b
}

// both is the condition that both filters fit; a nil one restricts nothing.
func both(c *api.Condition, f *api.Filter) *api.Condition {
	switch {
	case f == nil:
		return c
	case c == nil:
		return api.NewFilterAsCondition(f)
	}
	return api.NewFilterAsCondition(&api.Filter{Must: []*api.Condition{c, api.NewFilterAsCondition(f)}})
}
