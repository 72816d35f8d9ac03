package bleve

import (
	"context"
	"fmt"

	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/retriever/store"
)

// Keys of the metadata of an [Index]'s blocks.
const (
	// KeySource holds the path of the block's file, with slashes, relative to the folder.
	KeySource = "source"
	// KeyPage holds the page of a PDF that the block is from, an int from 1; other blocks do not have it.
	KeyPage = "page"
)

// Retriever is an [Index] as langchaingo sees it: it satisfies schema.Retriever.
type Retriever struct {
	index *Index
	k     int
}

var _ schema.Retriever = Retriever{}

// Retriever returns a retriever of the k best blocks. A k below 1 is reported by its first use.
func (x *Index) Retriever(k int) Retriever { return Retriever{index: x, k: k} }

// GetRelevantDocuments does a [Index.Search]. Each document's Metadata holds "id", the block's ID, "version", the version
// of its text, [KeySource] and [KeyPage].
func (r Retriever) GetRelevantDocuments(ctx context.Context, query string) ([]schema.Document, error) {
	return store.NewRetriever(r.index.Searcher(), store.Query{K: r.k}).GetRelevantDocuments(ctx, query)
}

// Searcher returns the index as a store.Searcher. The metadata of its hits, which filters may use, are [KeySource] and
// [KeyPage].
func (x *Index) Searcher() store.Searcher { return searcher{x} }

type searcher struct{ index *Index }

// Search finds blocks. The index has no tenants.
func (s searcher) Search(ctx context.Context, q store.Query) ([]store.Hit, error) {
	return s.index.core.hits(ctx, q, found.hit)
}

// hits searches without tenants, and filters by the metadata that hit gives.
func (c *core) hits(ctx context.Context, q store.Query, hit func(found) (store.Hit, error)) (out []store.Hit, err error) {
	defer func() {
		if err != nil {
			out, err = nil, fmt.Errorf("bleve: search: %w", err)
		}
	}()
	if err := q.Check(false); err != nil {
		return nil, err
	}
	var keep func(found) (bool, error)
	if q.Filter.Op != store.OpTrue {
		keep = func(f found) (bool, error) {
			h, err := hit(f)
			return err == nil && q.Filter.Matches(h.Metadata), err
		}
	}
	all, err := c.search(ctx, q.Text, q.K, keep)
	if err != nil {
		return nil, err
	}
	out = make([]store.Hit, len(all))
	for i, f := range all {
		if out[i], err = hit(f); err != nil {
			return nil, err
		}
	}
	return out, nil
}
