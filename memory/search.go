package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/memory/internal/index"
)

// Search ranks the scope's memories by vectors, words and names together, see [Hit]. If the embedder is not ready, see
// embed.ErrNotReady, it ranks them by words and names.
func (l *Local) Search(ctx context.Context, scope Scope, query string, k int, opts SearchOptions) (_ []Hit, err error) {
	defer named("search", &err)
	if err := scope.Validate(); err != nil {
		return nil, err
	}
	if err := opts.Filter.Validate(); err != nil {
		return nil, err
	}
	if k < 1 {
		k = DefaultK
	}
	query = clean(query)
	if query == "" {
		return []Hit{}, nil
	}
	asked, err := l.question(ctx, query)
	if err != nil {
		return nil, err
	}
	q := index.Query{Text: query, Vector: asked, Least: opts.Threshold}
	if !opts.Expired {
		q.Now = l.moment()
	}
	if !l.noEntities {
		q.Means = newMeant(query).similarity
	}
	return l.find(ctx, scope, q, k, opts.Filter)
}

// find ranks, and fetches the memories of the best. More are ranked if some of these do not match the filter, or were removed since.
func (l *Local) find(ctx context.Context, scope Scope, q index.Query, k int, filter Filter) ([]Hit, error) {
	hits := []Hit{}
	seen := map[string]bool{}
	for depth := k; ; depth *= 4 {
		var found []index.Found
		err := l.rank(ctx, scope, func(x *index.Index, space Space) error {
			switch err := l.fits(space, q.Vector); {
			case err != nil && l.byWords != nil:
				l.byWords(err)
				q.Vector = nil
			case err != nil:
				return err
			}
			found = x.Rank(q, depth)
			return nil
		})
		if err != nil {
			return nil, err
		}
		last := len(found) < depth
		found = slices.DeleteFunc(found, func(f index.Found) bool { return seen[f.ID] })
		more, err := l.complete(ctx, found)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			seen[f.ID] = true
		}
		for _, h := range more {
			if filter.Match(&h.Memory) {
				hits = append(hits, h)
			}
		}
		if len(hits) >= k || last {
			return hits[:min(k, len(hits))], nil
		}
	}
}

// complete fetches the memories of what was found. One that was removed since is left out.
func (l *Local) complete(ctx context.Context, found []index.Found) ([]Hit, error) {
	if len(found) == 0 {
		return nil, nil
	}
	ids := make([]string, len(found))
	for i := range found {
		ids[i] = found[i].ID
	}
	memories, err := l.backend.Get(ctx, ids)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]Memory, len(memories))
	for _, m := range memories {
		byID[m.ID] = m
	}
	hits := make([]Hit, 0, len(found))
	for _, f := range found {
		if m, ok := byID[f.ID]; ok {
			hits = append(hits, Hit{Memory: m, Score: f.Score, Semantic: f.Semantic, Lexical: f.Lexical, Entity: f.Entity})
		}
	}
	return hits, nil
}

// question embeds a query. nil: the embedder is not ready.
func (l *Local) question(ctx context.Context, query string) ([]float32, error) {
	v, err := l.embedder.EmbedQuery(ctx, query)
	switch {
	case errors.Is(err, embed.ErrNotReady):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrEmbedding, err)
	case len(v) == 0:
		return nil, fmt.Errorf("%w: %w", ErrEmbedding, &embed.DimensionError{Want: 1})
	}
	return v, nil
}

// fits compares a query's vector with the space of the vectors that it is to be compared with.
func (l *Local) fits(space Space, asked []float32) error {
	if asked == nil || space == (Space{}) {
		return nil
	}
	if space.Dimensions != len(asked) {
		return fmt.Errorf("%w: %w", ErrEmbedder, &embed.DimensionError{Want: space.Dimensions, Got: len(asked)})
	}
	if name := embed.NameOf(l.embedder); name != "" && space.Embedder != "" && name != space.Embedder {
		return fmt.Errorf("%w: %q, not %q", ErrEmbedder, space.Embedder, name)
	}
	return nil
}
