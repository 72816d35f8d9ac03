// Package vectorstore makes of a store what langchaingo's vectorstores.VectorStore asks for: documents without IDs of
// their own, and langchaingo's options. An option that a call cannot honour is an error that names it.
package vectorstore

import (
	"context"
	"fmt"

	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/vectorstores"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// Store is what documents are written to and found in.
type Store interface {
	store.Searcher
	Upsert(ctx context.Context, docs []store.Document) error
}

// Backend is a store for one call.
type Backend struct {
	// Package is the name of the store's package, which errors begin with.
	Package string
	// Store searches and writes with the embedder and the filter of the call.
	Store Store
	// Tenants says that documents have owners. Without tenants, Name is the only name space that is taken; empty: none.
	Tenants bool
	Name    string
	// NoTenants says how to get tenants.
	NoTenants string
	// Embedder is where the store has its embedder, which the call's takes the place of. NoEmbedder says why there is none.
	Embedder   *embed.Embedder
	NoEmbedder string
	// Words says that Options.Mode lets searches compare words alone.
	Words bool
	// Similarities says that scores are similarities with a scale of their own. Others are given as shares of the best.
	Similarities bool
}

// Open returns the backend for options. It takes filters in the terms of the store's server out of them.
type Open func(*vectorstores.Options) Backend

// with opens the backend for one call, with the call's embedder.
func (open Open) with(o *vectorstores.Options) (Backend, error) {
	b := open(o)
	switch {
	case o.Embedder == nil:
	case b.Embedder == nil || *b.Embedder == nil:
		return b, refused("WithEmbedder", "%s", b.NoEmbedder)
	default:
		*b.Embedder = o.Embedder
	}
	return b, nil
}

// Add stores documents and returns their IDs, without those that the deduplicater knows.
func Add(ctx context.Context, open Open, docs []schema.Document, options []vectorstores.Option) ([]string, error) {
	o := read(options)
	filters := o.Filters // the backend takes those in its server's terms out
	b, err := open.with(&o)
	if err == nil {
		switch {
		case o.ScoreThreshold != 0:
			err = refused("WithScoreThreshold", "it is for SimilaritySearch")
		case filters != nil:
			err = refused("WithFilters", "it is for SimilaritySearch")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: add documents: %w", b.Package, err)
	}
	tenant, err := b.tenant(o)
	if err != nil {
		return nil, fmt.Errorf("%s: add documents: %w", b.Package, err)
	}
	if o.Deduplicater != nil {
		docs = fresh(ctx, docs, o.Deduplicater)
	}
	stored, ids, err := documents(docs, tenant)
	if err != nil {
		return nil, fmt.Errorf("%s: add documents: %w", b.Package, err)
	}
	if len(stored) == 0 {
		return ids, nil
	}
	if err := b.Store.Upsert(ctx, stored); err != nil {
		return nil, err
	}
	return ids, nil
}

// Search returns the n documents that fit best, best first, of those that score at least the threshold.
func Search(ctx context.Context, open Open, text string, n int, options []vectorstores.Option) ([]schema.Document, error) {
	o := read(options)
	b, err := open.with(&o)
	if err != nil {
		return nil, fmt.Errorf("%s: similarity search: %w", b.Package, err)
	}
	q, err := b.query(o, text, n)
	if err != nil {
		return nil, fmt.Errorf("%s: similarity search: %w", b.Package, err)
	}
	return store.NewRetriever(scored{b, o.ScoreThreshold}, q).GetRelevantDocuments(ctx, text)
}

func (b Backend) query(o vectorstores.Options, text string, n int) (q store.Query, err error) {
	switch {
	case n < 1:
		return q, fmt.Errorf("%w: numDocuments = %d, want at least 1", store.ErrBadQuery, n)
	case !(o.ScoreThreshold >= 0 && o.ScoreThreshold <= 1): // NaN is neither
		return q, refused("WithScoreThreshold", "%v, want 0 to 1", o.ScoreThreshold)
	case o.Deduplicater != nil:
		return q, refused("WithDeduplicater", "it is for AddDocuments")
	case o.Embedder != nil && b.Words:
		return q, refused("WithEmbedder", "Options.Mode is store.Lexical: the search compares words, and no vectors")
	}
	q = store.Query{Text: text, K: n}
	if q.Tenant, err = b.tenant(o); err != nil {
		return q, err
	}
	q.Filter, err = filter(o.Filters)
	return q, err
}

// scored is a store whose hits score from the threshold on.
type scored struct {
	Backend
	threshold float32
}

func (s scored) Search(ctx context.Context, q store.Query) ([]store.Hit, error) {
	hits, err := s.Store.Search(ctx, q)
	if err != nil || len(hits) == 0 {
		return nil, err
	}
	best := hits[0].Score
	for i := range hits {
		if !s.Similarities {
			hits[i].Score = share(hits[i].Score, best)
		}
		if s.threshold > 0 && float32(hits[i].Score) < s.threshold {
			return hits[:i], nil
		}
	}
	return hits, nil
}

// share is a score as a share of the best one.
func share(score, best float64) float64 {
	if best <= 0 { // of fused scores, which may be so
		return 0
	}
	return max(score/best, 0)
}

// tenant returns the tenant that the name space stands for.
func (b Backend) tenant(o vectorstores.Options) (string, error) {
	switch {
	case b.Tenants && o.NameSpace == "":
		return "", refused("WithNameSpace", "it is not set, and the store has tenants: the name space says whose documents are meant")
	case !b.Tenants && o.NameSpace != "" && o.NameSpace != b.Name:
		return "", refused("WithNameSpace", "%q, and the store has no tenants: %s", o.NameSpace, b.NoTenants)
	case b.Tenants:
		return o.NameSpace, nil
	}
	return "", nil
}

// refused is the error about an option of package vectorstores.
func refused(option, format string, args ...any) error {
	return fmt.Errorf("%w: vectorstores.%s: %s", store.ErrBadOption, option, fmt.Sprintf(format, args...))
}

func read(options []vectorstores.Option) (o vectorstores.Options) {
	for _, option := range options {
		option(&o)
	}
	return o
}

// fresh leaves out the documents that known reports.
func fresh(ctx context.Context, docs []schema.Document, known func(context.Context, schema.Document) bool) []schema.Document {
	out := make([]schema.Document, 0, len(docs))
	for _, d := range docs {
		if !known(ctx, d) {
			out = append(out, d)
		}
	}
	return out
}
