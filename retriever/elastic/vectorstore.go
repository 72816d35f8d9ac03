package elastic

import (
	"context"

	"github.com/elastic/go-elasticsearch/v8/typedapi/types"
	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/vectorstores"

	"github.com/ragpilot/ragpilot/retriever/internal/vectorstore"
	"github.com/ragpilot/ragpilot/retriever/store"
)

var _ vectorstores.VectorStore = (*Index)(nil)

// AddDocuments stores documents, as langchaingo's vector stores do, and returns their IDs: the string at "id" of the
// metadata, or an ID made of text and metadata. So documents that are added again are replaced; two texts of one call
// with the same "id" are an error. The index must exist, see [Index.Create]. What is said of [Index.Upsert] holds here.
//
// [vectorstores.WithNameSpace] is the tenant of an index with tenants, and may else be Options.Index.
// [vectorstores.WithEmbedder] replaces Options.Embedder. [vectorstores.WithDeduplicater] leaves out the documents for
// which it is true, also in the IDs. Other options are errors (store.ErrBadOption).
func (x *Index) AddDocuments(ctx context.Context, docs []schema.Document, options ...vectorstores.Option) ([]string, error) {
	return vectorstore.Add(ctx, x.backend, docs, options)
}

// SimilaritySearch returns the at most numDocuments documents that fit best, best first, as langchaingo's documents with
// "id" and "version" in the metadata. Scores of store.Dense are the server's, from 0 to 1: (1+cosine)/2 in indexes that
// [Index.Create] made. Those of store.Lexical and store.Hybrid have no scale of their own, and are given as shares of the
// best document's, from 0 to 1. [vectorstores.WithScoreThreshold] compares with these scores.
//
// [vectorstores.WithFilters] takes a store.Filter, a *types.Query of the client, a map of keys and the values wanted
// there, or a map in the form of Qdrant's filters (must, should, must_not). [vectorstores.WithNameSpace] and
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
		Package: "elastic", Store: &y, Tenants: x.opts.Layout.tenants(), Name: x.opts.Index,
		NoTenants: "set Options.Layout.Tenant",
		Embedder:  &y.opts.Embedder, NoEmbedder: "the index is opened without vectors: set Options.Embedder",
		Words: x.opts.Mode == store.Lexical, Similarities: x.opts.Mode == store.Dense,
	}
	if f, own := o.Filters.(*types.Query); own {
		y.opts.Filter, o.Filters = both(x.opts.Filter, f), nil
	}
	return b
}

// both is the query that both filters fit; a nil one restricts nothing.
func both(a, b *types.Query) *types.Query {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return &types.Query{Bool: &types.BoolQuery{Filter: []types.Query{*a, *b}}}
}
