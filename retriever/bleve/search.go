package bleve

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	bleveindex "github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/search"
	"github.com/blevesearch/bleve/v2/search/query"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/retriever/store"
)

const (
	// maxQueryBytes bounds a query; what is beyond is ignored. A question of that length is a pasted document
	// whose first thousand words already decide the ranking.
	maxQueryBytes = 8 << 10
	// slack is the number of hits fetched beyond k, to see whether those at the cut share a score.
	slack = 4
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
		return nil, fmt.Errorf("bleve: k = %d, want at least 1: %w", k, store.ErrBadQuery)
	}
	if strings.TrimSpace(query) == "" {
		return nil, fmt.Errorf("bleve: query = %q: %w", query, ErrEmptyQuery)
	}
	found, err := x.core.search(ctx, query, k, nil)
	if err != nil {
		return nil, fmt.Errorf("bleve: search: %w", err)
	}
	blocks := make([]contextpilot.Block, len(found))
	for i, f := range found {
		blocks[i] = contextpilot.Block{ID: f.id, Text: f.text, Score: f.score}
	}
	return blocks, nil
}

// Blocks returns all blocks, in the order of their IDs. Errors: a closed index ([ErrClosed]), and the end of ctx.
func (x *Index) Blocks(ctx context.Context) ([]contextpilot.Block, error) {
	c := x.core
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.index == nil {
		return nil, ErrClosed
	}
	req := bleveindex.NewSearchRequestOptions(bleveindex.NewMatchAllQuery(), c.stats.Load().blocks, 0, false)
	req.Fields = []string{bodyField, recordField}
	res, err := c.index.SearchInContext(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("bleve: %w", cmp.Or(context.Cause(ctx), err))
	}
	var blocks []contextpilot.Block
	for _, f := range ranked(res) {
		blocks = append(blocks, contextpilot.Block{ID: f.id, Text: f.text})
	}
	slices.SortFunc(blocks, func(a, b contextpilot.Block) int { return cmp.Compare(a.ID, b.ID) })
	return blocks, nil
}

// found is a block that a search found.
type found struct {
	id, text string
	score    float64
	record   any // as stored
}

// search returns the k best blocks that keep lets through; a nil keep lets all through.
func (c *core) search(ctx context.Context, text string, k int, keep func(found) (bool, error)) ([]found, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.index == nil {
		return nil, ErrClosed
	}
	stats := c.stats.Load()
	ctx = context.WithValue(ctx, search.BM25StatsKey, stats.bm25)
	q := stats.query(trimQuery(text))
	for size := min(k, stats.blocks) + slack; ; size *= 2 {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		req := bleveindex.NewSearchRequestOptions(q, size, 0, false)
		req.Fields = []string{bodyField, recordField}
		res, err := c.index.SearchInContext(ctx, req)
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return nil, err
		}
		all := ranked(res)
		hits, err := filtered(all, keep)
		if err != nil {
			return nil, err
		}
		// bleve breaks ties by its internal numbering. If the last hit fetched still has the score of the
		// k-th, others with that score and a smaller ID may not have been fetched.
		if len(all) < size || len(hits) >= k && all[len(all)-1].score < hits[k-1].score {
			return slices.Clip(hits[:min(k, len(hits))]), nil
		}
	}
}

// query matches the text's words in the field of each analyzer. A block has one of these fields only.
func (s *stats) query(text string) query.Query {
	fields := make([]query.Query, 0, len(s.analyzers))
	for _, name := range s.analyzers {
		match := bleveindex.NewMatchQuery(text)
		match.SetField(textField(name))
		match.Analyzer = name
		fields = append(fields, match)
	}
	switch len(fields) {
	case 0:
		return bleveindex.NewMatchNoneQuery()
	case 1:
		return fields[0]
	}
	return bleveindex.NewDisjunctionQuery(fields...)
}

// ranked returns the hits sorted by score and ID.
func ranked(res *bleveindex.SearchResult) []found {
	out := make([]found, len(res.Hits))
	for i, hit := range res.Hits {
		text, _ := hit.Fields[bodyField].(string)
		// The sum of a long query's term scores depends on the order of the summands, which differs between
		// blocks of the same text. Single precision hides that difference.
		out[i] = found{id: hit.ID, text: text, score: float64(float32(hit.Score)), record: hit.Fields[recordField]}
	}
	slices.SortFunc(out, func(a, b found) int {
		return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.id, b.id))
	})
	return out
}

func filtered(all []found, keep func(found) (bool, error)) ([]found, error) {
	if keep == nil {
		return all, nil
	}
	hits := make([]found, 0, len(all))
	for _, f := range all {
		ok, err := keep(f)
		if err != nil {
			return nil, err
		}
		if ok {
			hits = append(hits, f)
		}
	}
	return hits, nil
}

// trimQuery bounds the work that one query can cause.
func trimQuery(query string) string {
	if len(query) <= maxQueryBytes {
		return query
	}
	return strings.ToValidUTF8(query[:maxQueryBytes], "")
}
