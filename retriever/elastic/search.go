package elastic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/ragpilot/ragpilot/retriever/store"
)

const (
	// slack is the number of hits fetched beyond K, to see whether those at the cut share a score.
	slack = 8
	// maxHits is the most that a server gives at once (index.max_result_window), and so the most that a search finds.
	maxHits = 10_000
	// maxQueryBytes bounds a question; what is beyond is ignored. A question of that length is a pasted document whose
	// first thousand words already decide the ranking, and servers refuse more words than a few thousand.
	maxQueryBytes = 8 << 10
	// maxAnalyzed is how much of a text is looked at for passages; servers refuse to look at more.
	maxAnalyzed = 1_000_000
)

// Search returns the at most q.K documents that fit best, see [store.Searcher]; never more than 10,000, of which the ties
// at the end are then the server's choice. Only the first 8 KiB of the question are used. Errors of the embedder are
// returned wrapped.
func (x *Index) Search(ctx context.Context, q store.Query) (hits []store.Hit, err error) {
	err = x.calls.Do(ctx, "search", func(ctx context.Context) error {
		if err := q.Check(x.opts.Layout.tenants()); err != nil {
			return err
		}
		s, err := x.question(ctx, q)
		if err != nil {
			return err
		}
		if x.opts.Mode != store.Lexical && !x.vectors.Load() {
			if err := x.checkVectors(ctx, store.ErrBadQuery); err != nil {
				return err
			}
		}
		k := min(q.K, maxHits)
		if x.opts.Mode == store.Hybrid {
			hits, err = x.fused(ctx, s, k)
		} else {
			hits, err = x.best(ctx, s, x.opts.Mode, k)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return hits, nil
}

// question is a query as the server will be asked.
type question struct {
	text   string
	vector []float32
	filter []any
}

func (x *Index) question(ctx context.Context, q store.Query) (question, error) {
	s := question{text: trimQuery(q.Text)}
	var err error
	if s.filter, err = x.restriction(q); err != nil {
		return s, err
	}
	if x.opts.Mode == store.Lexical {
		return s, nil
	}
	if s.vector, err = x.opts.Embedder.EmbedQuery(ctx, store.ValidText(q.Text)); err != nil {
		return s, fmt.Errorf("embed the question: %w", err)
	}
	if len(s.vector) == 0 {
		return s, fmt.Errorf("embed the question: %w: the embedder made a vector without numbers", store.ErrBadQuery)
	}
	return s, nil
}

// trimQuery bounds the work that one query can cause.
func trimQuery(query string) string {
	if len(query) > maxQueryBytes {
		return strings.ToValidUTF8(query[:maxQueryBytes], "")
	}
	return store.ValidText(query)
}

// best returns the first k hits of one kind. If the last hit fetched still has the score of the k-th, others with that
// score and a smaller ID may not have been fetched: the server breaks ties by where documents stand.
func (x *Index) best(ctx context.Context, s question, mode store.Mode, k int) ([]store.Hit, error) {
	for size := min(k+slack, maxHits); ; size = min(4*size, maxHits) {
		hits, err := x.ask(ctx, x.request(s, mode, size))
		if err != nil {
			return nil, err
		}
		if len(hits) == 0 && mode == store.Dense { // the alias may lead elsewhere by now
			return nil, x.checkVectors(ctx, store.ErrBadQuery)
		}
		store.Sort(hits)
		if len(hits) < size || size == maxHits || hits[len(hits)-1].Score < hits[k-1].Score {
			return slices.Clip(hits[:min(k, len(hits))]), nil
		}
	}
}

// fused asks for both kinds at the same time and fuses the ranks.
func (x *Index) fused(ctx context.Context, s question, k int) ([]store.Hit, error) {
	depth := min(max(k, x.opts.Candidates), maxHits)
	modes := [2]store.Mode{store.Lexical, store.Dense}
	var found [2][]store.Hit
	var errs [2]error
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var both sync.WaitGroup
	for i, mode := range modes {
		both.Go(func() {
			if found[i], errs[i] = x.best(ctx, s, mode, depth); errs[i] != nil {
				cancel(errs[i]) // the other result alone would not be an answer
			}
		})
	}
	both.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return fuse(found[0], found[1], x.opts.RankConstant, k), nil
}

// fuse returns the first k of two ranked results by reciprocal ranks. Texts under one ID are documents of their own, as
// an alias can lead to several indexes.
func fuse(a, b []store.Hit, constant, k int) []store.Hit {
	type document struct{ id, text string }
	out := make([]store.Hit, 0, len(a)+len(b))
	at := make(map[document]int, len(a)+len(b))
	for _, ranked := range [][]store.Hit{a, b} {
		in := make(map[document]bool, len(ranked))
		for rank, h := range ranked {
			d := document{h.ID, h.Text}
			if in[d] {
				continue // its better rank counts
			}
			in[d] = true
			score := 1 / float64(constant+rank+1)
			if i, seen := at[d]; seen {
				out[i].Score += score
				continue
			}
			h.Score = score
			at[d] = len(out)
			out = append(out, h)
		}
	}
	store.Sort(out)
	return slices.Clip(out[:min(k, len(out))])
}

// request asks for the first hits of one kind.
func (x *Index) request(s question, mode store.Mode, size int) object {
	match := object{"match": object{x.opts.Layout.Text: object{"query": s.text}}}
	r := object{"size": size, "track_total_hits": false, "_source": object{"excludes": x.unread()}}
	query := object{}
	if len(s.filter) > 0 {
		query["filter"] = s.filter
	}
	if mode == store.Dense {
		query["field"], query["query_vector"] = x.opts.Layout.Vector, s.vector
		query["k"], query["num_candidates"] = size, min(max(size, x.opts.Candidates), maxCandidates)
		r["knn"] = []any{query}
	} else {
		query["must"] = []any{match}
		r["query"] = object{"bool": query}
	}
	if p := x.opts.Passages; p.Count > 0 {
		r["highlight"] = object{
			"fields": object{x.opts.Layout.Text: object{}}, "highlight_query": match, "order": "score",
			"number_of_fragments": p.Count, "fragment_size": p.Characters, "max_analyzed_offset": maxAnalyzed,
			"pre_tags": []string{""}, "post_tags": []string{""},
		}
	}
	return r
}

// unread are the fields that no hit needs: vectors are longer than texts.
func (x *Index) unread() []string {
	out := []string{x.opts.Layout.Vector}
	if !x.opts.Layout.Mapped {
		out = append(out, facetsField, numbersField)
	}
	return out
}

// found sends one search and returns what the server answers.
func (x *Index) found(ctx context.Context, r object) (a answer, err error) {
	body, err := json.Marshal(r)
	if err != nil {
		return a, fmt.Errorf("%w: %w", store.ErrBadQuery, err)
	}
	err = x.read(ctx, call{
		name: "search", method: http.MethodPost, path: x.opts.Index + "/_search", body: body,
		query: url.Values{"allow_partial_search_results": {"false"}},
	}, store.ErrBadQuery, &a)
	return a, err
}

// ask returns the hits of one search.
func (x *Index) ask(ctx context.Context, r object) ([]store.Hit, error) {
	a, err := x.found(ctx, r)
	if err != nil {
		return nil, err
	}
	if a.TimedOut || a.Shards.Failed > 0 {
		return nil, fmt.Errorf("%w: %d of %d shards answered", store.ErrUnavailable, a.Shards.Total-a.Shards.Failed, a.Shards.Total)
	}
	hits := make([]store.Hit, len(a.Hits.Hits))
	for i := range a.Hits.Hits {
		if hits[i], err = x.hit(&a.Hits.Hits[i]); err != nil {
			return nil, err
		}
	}
	return hits, nil
}
