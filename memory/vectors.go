package memory

import (
	"context"
	"errors"
	"fmt"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/memory/internal/index"
)

// vectors embeds texts that will be stored. If the embedder is not ready all vectors are nil: [Local.Fill] makes them later.
func (l *Local) vectors(ctx context.Context, texts []string) ([][]float32, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	vectors, err := l.embedder.EmbedDocuments(ctx, texts)
	switch {
	case errors.Is(err, embed.ErrNotReady):
		return make([][]float32, len(texts)), nil
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrEmbedding, err)
	case len(vectors) != len(texts):
		return nil, fmt.Errorf("%w: %w: %d and %d", ErrEmbedding, embed.ErrCount, len(vectors), len(texts))
	}
	for _, v := range vectors {
		if len(v) == 0 || len(v) != len(vectors[0]) {
			return nil, fmt.Errorf("%w: %w", ErrEmbedding, &embed.DimensionError{Want: max(len(vectors[0]), 1), Got: len(v)})
		}
	}
	return vectors, nil
}

// agree makes sure, within a transaction, that vectors of that length may be stored beside those that are. The first vectors
// decide. An embedder that is not the store's is an [ErrEmbedder].
func (l *Local) agree(ctx context.Context, tx Tx, vectors ...[]float32) error {
	for _, v := range vectors {
		if len(v) == 0 {
			continue
		}
		space, err := tx.Space(ctx)
		if err != nil {
			return err
		}
		if space == (Space{}) {
			return tx.SetSpace(ctx, Space{Dimensions: len(v), Embedder: embed.NameOf(l.embedder)})
		}
		return l.fits(space, v)
	}
	return nil
}

// agreed is agree; keep: false: the vectors are to be left out, see [Config.ByWords].
func (l *Local) agreed(ctx context.Context, tx Tx, vectors ...[]float32) (keep bool, err error) {
	err = l.agree(ctx, tx, vectors...)
	if l.byWords != nil && errors.Is(err, ErrEmbedder) {
		l.byWords(err)
		return false, nil
	}
	return err == nil, err
}

// related finds the nearest memories of each text.
func (l *Local) related(ctx context.Context, scope Scope, texts []string, k int) ([][]Memory, error) {
	vectors, err := l.vectors(ctx, texts)
	if err != nil {
		return nil, err
	}
	out := make([][]Memory, len(texts))
	for i, text := range texts {
		hits, err := l.find(ctx, scope, index.Query{Text: text, Vector: vectors[i], Now: l.moment()}, k, Filter{})
		if err != nil {
			return nil, err
		}
		for _, h := range hits {
			out[i] = append(out[i], h.Memory)
		}
	}
	return out, nil
}

// fillBatch is how many memories are embedded and stored together.
const fillBatch = 64

// Fill makes the vectors of memories that were stored while the embedder was not ready, and returns how many. Memories are found by their
// words until then. It can be ended at any time, and goes on where it was when it is called again. Several calls at a time do
// the same work. A store whose vectors another embedder has made is an [ErrEmbedder], see [Local.Reembed].
func (l *Local) Fill(ctx context.Context) (filled int, err error) {
	for {
		n, err := l.fillSome(ctx)
		filled += n
		if err != nil {
			return filled, fmt.Errorf("memory: fill: %w", err)
		}
		if n == 0 {
			return filled, nil
		}
	}
}

func (l *Local) fillSome(ctx context.Context) (filled int, err error) {
	var some []Memory
	err = l.backend.Scan(ctx, Scope{}, Unembedded, func(r *Record) bool {
		some = append(some, r.Memory)
		return len(some) < fillBatch
	})
	if err != nil || len(some) == 0 {
		return 0, err
	}
	texts := make([]string, len(some))
	for i := range some {
		texts[i] = some[i].Text
	}
	vectors, err := l.vectors(ctx, texts)
	if err != nil || vectors[0] == nil {
		return 0, err
	}
	err = l.backend.Change(ctx, func(tx Tx) error {
		if err := l.agree(ctx, tx, vectors...); err != nil {
			return err
		}
		filled = 0
		for i := range some {
			now, ok, err := tx.Get(ctx, some[i].ID)
			if err != nil {
				return err
			}
			filled++ // what was changed or removed meanwhile has been seen to
			if !ok || now.Text != some[i].Text {
				continue
			}
			if err := tx.SetVector(ctx, now.ID, vectors[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return filled, err
}

// Reembed brings the store to its embedder: vectors that another one has made are removed, all at once, and made anew. Until one is, its
// memory is found by its words. It can be ended at any time, even by the death of the process, and goes on where it was when it is
// called again. A process that still uses the other embedder is refused from then on ([ErrEmbedder]). A store that is its
// embedder's already only has missing vectors filled.
func (l *Local) Reembed(ctx context.Context) (err error) {
	defer named("reembed", &err)
	var want Space
	switch v, err := l.embedder.EmbedQuery(ctx, "dimensions"); {
	case err == nil:
		want = Space{Dimensions: len(v), Embedder: embed.NameOf(l.embedder)}
	case l.embedder != Lexical:
		return err
	}
	err = l.backend.Change(ctx, func(tx Tx) error {
		have, err := tx.Space(ctx)
		if err != nil || have == want && want.Embedder != "" || have == (Space{}) {
			return err
		}
		if err := tx.DropVectors(ctx); err != nil {
			return err
		}
		return tx.SetSpace(ctx, want)
	})
	if err == nil {
		_, err = l.Fill(ctx)
	}
	return err
}
