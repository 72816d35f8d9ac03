package bleve

import (
	"context"

	bleveindex "github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/search"
)

// NewBar lets tests draw without a terminal and with a clock of their own.
var NewBar = newBar

// Bare sends what a search sends to bleve itself, and returns the number of hits.
func (x *Index) Bare(ctx context.Context, text string, k int) (int, error) {
	stats := x.core.stats.Load()
	req := bleveindex.NewSearchRequestOptions(stats.query(text), min(k, stats.blocks)+slack, 0, false)
	req.Fields = []string{bodyField, recordField}
	res, err := x.core.index.SearchInContext(context.WithValue(ctx, search.BM25StatsKey, stats.bm25), req)
	if err != nil {
		return 0, err
	}
	return len(res.Hits), nil
}
