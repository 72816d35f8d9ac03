package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/memory/internal/lexical"
)

// Search ranks the scope's memories by vectors, words and names together, see [Hit].
func (l *Local) Search(ctx context.Context, scope Scope, query string, k int, opts SearchOptions) ([]Hit, error) {
	hits, err := l.search(ctx, scope, query, k, opts)
	if err != nil {
		return nil, fmt.Errorf("memory: search: %w", err)
	}
	return hits, nil
}

func (l *Local) search(ctx context.Context, scope Scope, query string, k int, opts SearchOptions) ([]Hit, error) {
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
	terms := lexical.Distinct(lexical.Terms(query))
	words, err := l.lexicalScores(ctx, scope, terms)
	if err != nil {
		return nil, err
	}
	hits, err := l.candidates(ctx, scope, query, asked, opts)
	if err != nil {
		return nil, err
	}
	combine(hits, words, len(terms))
	slices.SortFunc(hits, better)
	return l.complete(ctx, hits[:min(k, len(hits))])
}

// better puts the higher score first, then the newer memory, then the lower ID.
func better(a, b Hit) int {
	return cmp.Or(
		cmp.Compare(b.Score, a.Score),
		b.Memory.CreatedAt.Compare(a.Memory.CreatedAt),
		strings.Compare(a.Memory.ID, b.Memory.ID),
	)
}

// lexicalScores returns the BM25 score of every memory that has a term of the query, by ID. Its corpus is the scope: what
// others store changes nothing.
func (l *Local) lexicalScores(ctx context.Context, scope Scope, terms []string) (map[string]float64, error) {
	if len(terms) == 0 {
		return nil, nil
	}
	lex, err := l.backend.Lexicon(ctx, scope, terms)
	if err != nil {
		return nil, err
	}
	texts := make([][]string, len(lex.Postings))
	for i, p := range lex.Postings {
		texts[i] = p.Terms
	}
	scores := lexical.Corpus{Texts: lex.Memories, Terms: lex.Terms}.Scores(terms, texts)
	words := make(map[string]float64, len(scores))
	for i, p := range lex.Postings {
		words[p.ID] = scores[i]
	}
	return words, nil
}

// candidates returns the memories that may be found, with their semantic score. Without a filter they have no more than
// what orders them; see complete.
func (l *Local) candidates(ctx context.Context, scope Scope, query string, asked []float32, opts SearchOptions) ([]Hit, error) {
	part := Whole
	if opts.Filter.IsZero() {
		part = Vectors
	}
	threshold := opts.Threshold
	if threshold == 0 {
		threshold = DefaultThreshold
	}
	now := l.moment()
	var hits []Hit
	var entities [][]*entity // by hit
	names := newMeant(query)
	var wrong error
	err := l.backend.Scan(ctx, scope, part, func(r *Record) bool {
		named := names.see(r.Entities)
		if !opts.Expired && r.Memory.Expired(now) || !opts.Filter.Match(&r.Memory) {
			return true
		}
		cosine, err := embed.Cosine(asked, r.Vector)
		if err != nil {
			wrong = fmt.Errorf("memory %q: %w", r.Memory.ID, err)
			return false
		}
		if cosine >= threshold || threshold < 0 {
			hits, entities = append(hits, Hit{Memory: r.Memory, Semantic: max(cosine, 0)}), append(entities, named)
		}
		return true
	})
	for i := range hits { // now that all memories have been seen
		hits[i].Entity = boosted(entities[i])
	}
	return hits, cmp.Or(wrong, err)
}

// complete fetches the memories of the hits. One that was removed since is left out.
func (l *Local) complete(ctx context.Context, hits []Hit) ([]Hit, error) {
	if len(hits) == 0 {
		return []Hit{}, nil
	}
	ids := make([]string, len(hits))
	for i := range hits {
		ids[i] = hits[i].Memory.ID
	}
	memories, err := l.backend.Get(ctx, ids)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]Memory, len(memories))
	for _, m := range memories {
		byID[m.ID] = m
	}
	out := make([]Hit, 0, len(hits))
	for _, h := range hits {
		if m, ok := byID[h.Memory.ID]; ok {
			h.Memory = m
			out = append(out, h)
		}
	}
	return out, nil
}
