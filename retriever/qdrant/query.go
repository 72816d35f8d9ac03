package qdrant

import (
	"context"
	"fmt"

	api "github.com/qdrant/go-client/qdrant"
)

// vectors are those of a question. A nil dense vector, and a sparse one without values, are not searched for.
type vectors struct {
	dense  []float32
	sparse SparseVector
}

// none reports that there is nothing to search for: a search by words for a question without words.
func (v vectors) none() bool { return v.dense == nil && len(v.sparse.Indices) == 0 }

func (x *Index) embed(ctx context.Context, text string) (v vectors, err error) {
	if x.opts.dense() {
		if v.dense, err = x.opts.Embedder.EmbedQuery(ctx, text); err != nil {
			return v, fmt.Errorf("embed the query: %w", err)
		}
	}
	if x.opts.sparse() {
		if v.sparse, err = x.opts.Sparse.SparseQuery(ctx, text); err != nil {
			return v, fmt.Errorf("embed the query's words: %w", err)
		}
	}
	return v, nil
}

// request returns the query for these vectors, without the choice of the payload.
func (x *Index) request(v vectors, filter *api.Filter, limit int) *api.QueryPoints {
	n := uint64(limit) //nolint:gosec // at least 1
	q := &api.QueryPoints{CollectionName: x.opts.Collection, Limit: &n, Filter: filter}
	switch {
	case len(v.sparse.Indices) == 0:
		q.Query, q.Using = api.NewQueryDense(v.dense), x.denseName()
		return q
	case v.dense == nil:
		q.Query, q.Using = api.NewQuerySparse(v.sparse.Indices, v.sparse.Values), &x.opts.SparseVector
		return q
	}
	// The candidates are so many for small K, too, that asking for more hits does not change the ranks.
	candidates := max(n, uint64(x.opts.Candidates)) //nolint:gosec // checked by withDefaults
	q.Prefetch = []*api.PrefetchQuery{
		{Query: api.NewQueryDense(v.dense), Using: x.denseName(), Filter: filter, Limit: &candidates},
		{
			Query: api.NewQuerySparse(v.sparse.Indices, v.sparse.Values), Using: &x.opts.SparseVector,
			Filter: filter, Limit: &candidates,
		},
	}
	q.Query = api.NewQueryFusion(api.Fusion_RRF)
	if x.opts.Fusion == DBSF {
		q.Query = api.NewQueryFusion(api.Fusion_DBSF)
	}
	return q
}

// denseName is nil for the unnamed vector.
func (x *Index) denseName() *string {
	if x.opts.Vector == "" {
		return nil
	}
	return &x.opts.Vector
}
