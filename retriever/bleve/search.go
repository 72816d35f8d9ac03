package bleve

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	bleveindex "github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/search"

	"github.com/ragpilot/ragpilot/contextpilot"
)

const (
	// maxQueryBytes bounds a query; what is beyond is ignored. A question of that length is a pasted document
	// whose first thousand words already decide the ranking.
	maxQueryBytes = 8 << 10
	// slack is the number of hits fetched beyond k, to see whether those at the cut share a score.
	slack = 16
)

// Search returns the at most k blocks that match the query best, best first; blocks of the same score stand
// in the order of their IDs, also at the cut, so equal queries give equal results in every process.
// Fewer than k blocks, or none, match if the query's words are rare or are all stop words.
//
// The query is plain text: operators of bleve's query language have no meaning in it, and only its first 8 KiB
// are used. Scores can be compared within one result only. Errors: an empty query ([ErrEmptyQuery]), k below
// 1, a closed index ([ErrClosed]), and the end of ctx.
func (x *Index) Search(ctx context.Context, query string, k int) ([]contextpilot.Block, error) {
	if k < 1 {
		return nil, fmt.Errorf("bleve: k = %d, want at least 1", k)
	}
	if strings.TrimSpace(query) == "" {
		return nil, fmt.Errorf("bleve: query = %q: %w", query, ErrEmptyQuery)
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.index == nil {
		return nil, fmt.Errorf("bleve: search: %w", ErrClosed)
	}

	ctx = x.searchContext(ctx)
	match := bleveindex.NewMatchQuery(trimQuery(query))
	match.SetField(textField)
	for size := min(k, len(x.blocks)) + slack; ; size *= 2 {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("bleve: search: %w", context.Cause(ctx))
		}
		res, err := x.index.SearchInContext(ctx, bleveindex.NewSearchRequestOptions(match, size, 0, false))
		if err != nil {
			return nil, fmt.Errorf("bleve: search: %w", err)
		}
		blocks := x.ranked(res)
		// bleve breaks ties by its internal numbering. If the last hit fetched still has the score of the
		// k-th, others with that score and a smaller ID may not have been fetched.
		if len(blocks) < size || blocks[len(blocks)-1].Score < blocks[k-1].Score {
			return slices.Clip(blocks[:min(k, len(blocks))]), nil
		}
	}
}

// ranked returns the hits as blocks, sorted by score and ID.
func (x *Index) ranked(res *bleveindex.SearchResult) []contextpilot.Block {
	blocks := make([]contextpilot.Block, len(res.Hits))
	for i, hit := range res.Hits {
		blocks[i] = x.blocks[hit.ID]
		// The sum of a long query's term scores depends on the order of the summands, which differs between
		// blocks of the same text. Single precision hides that difference.
		blocks[i].Score = float64(float32(hit.Score))
	}
	slices.SortFunc(blocks, func(a, b contextpilot.Block) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.ID, b.ID))
	})
	return blocks
}

// searchContext tells bleve the true average length of a block. Left alone it would take the number of
// different terms for the number of terms, and count a term once per segment, so that scores would change
// with the merging of segments in the background.
func (x *Index) searchContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, search.BM25StatsKey, x.stats)
}

// trimQuery bounds the work that one query can cause.
func trimQuery(query string) string {
	if len(query) <= maxQueryBytes {
		return query
	}
	return strings.ToValidUTF8(query[:maxQueryBytes], "")
}
