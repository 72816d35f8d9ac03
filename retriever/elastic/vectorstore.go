package elastic

import (
	"context"
	"reflect"

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
// [vectorstores.WithFilters] takes a store.Filter, a map of keys and the values wanted there, a map in the form of Qdrant's
// filters (must, should, must_not), or what Options.Filter takes and is no map, such as a *types.Query of go-elasticsearch or
// a json.RawMessage. [vectorstores.WithNameSpace] and [vectorstores.WithEmbedder] are as in [Index.AddDocuments]; the latter is
// an error where Options.Mode is store.Lexical. Other options are errors (store.ErrBadOption).
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
	if _, ours := o.Filters.(store.Filter); ours || reflect.ValueOf(o.Filters).Kind() == reflect.Map {
		return b
	}
	if f, err := encoded(o.Filters); err == nil { // a query in the server's terms, or none
		o.Filters = nil
		switch {
		case y.opts.Filter == nil:
			y.opts.Filter = f
		case f != nil:
			y.opts.Filter = object{"bool": object{"filter": []any{y.opts.Filter, f}}}
		}
	}
	return b
}
