package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/embed"
)

// vectors embeds texts that will be stored and checks that they can be compared with what is.
func (l *Local) vectors(ctx context.Context, texts []string) ([][]float32, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	vectors, err := l.embedder.EmbedDocuments(ctx, texts)
	if err != nil {
		return nil, fmt.Errorf("embed: %w", err)
	}
	if len(vectors) != len(texts) {
		return nil, fmt.Errorf("%w: %d and %d", embed.ErrCount, len(vectors), len(texts))
	}
	for _, v := range vectors {
		if err := l.fits(ctx, len(v)); err != nil {
			return nil, err
		}
	}
	return vectors, nil
}

// question embeds a query.
func (l *Local) question(ctx context.Context, query string) ([]float32, error) {
	v, err := l.embedder.EmbedQuery(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("embed: %w", err)
	}
	return v, l.fits(ctx, len(v))
}

// fits compares the embedder with the backend's space, which the first vector sets.
func (l *Local) fits(ctx context.Context, dimensions int) error {
	space, resets := l.knownSpace()
	if dimensions == 0 {
		return fmt.Errorf("embed: %w", &embed.DimensionError{Want: space.Dimensions, Got: 0})
	}
	if space.Dimensions == 0 {
		var err error
		space, err = l.backend.Space(ctx, Space{Dimensions: dimensions, Embedder: embed.NameOf(l.embedder)})
		if err != nil {
			return err
		}
		l.learnSpace(space, resets)
	}
	if space.Dimensions != dimensions {
		return fmt.Errorf("%w: %w", ErrEmbedder, &embed.DimensionError{Want: space.Dimensions, Got: dimensions})
	}
	if name := embed.NameOf(l.embedder); name != "" && space.Embedder != "" && name != space.Embedder {
		return fmt.Errorf("%w: %q, not %q", ErrEmbedder, space.Embedder, name)
	}
	return nil
}

// knownSpace returns what the backend was found to hold, and how often that was forgotten.
func (l *Local) knownSpace() (Space, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.space, l.resets
}

// learnSpace keeps what was found, unless the store was reset since.
func (l *Local) learnSpace(space Space, resets int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if resets == l.resets {
		l.space = space
	}
}

func (l *Local) forgetSpace() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.space = Space{}
	l.resets++
}

// near is a memory with its distance to a text.
type near struct {
	memory Memory
	cosine float64
}

// related finds the nearest memories of each text, by vectors alone, with one walk over the scope.
func (l *Local) related(ctx context.Context, scope Scope, texts []string, k int) ([][]Memory, error) {
	vectors, err := l.vectors(ctx, texts)
	if err != nil {
		return nil, err
	}
	now := l.moment()
	nearest := make([][]near, len(texts))
	var wrong error
	err = l.backend.Scan(ctx, scope, Whole, func(r *Record) bool {
		if r.Memory.Expired(now) {
			return true
		}
		for i, v := range vectors {
			cosine, err := embed.Cosine(v, r.Vector)
			if err != nil {
				wrong = fmt.Errorf("memory %q: %w", r.Memory.ID, err)
				return false
			}
			nearest[i] = keepNearest(nearest[i], near{r.Memory, cosine}, k)
		}
		return true
	})
	if err = cmp.Or(wrong, err); err != nil {
		return nil, err
	}
	out := make([][]Memory, len(texts))
	for i, list := range nearest {
		for _, n := range list {
			out[i] = append(out[i], n.memory)
		}
	}
	return out, nil
}

// keepNearest puts n into a list of at most k, the nearest first.
func keepNearest(list []near, n near, k int) []near {
	at, _ := slices.BinarySearchFunc(list, n, func(a, b near) int {
		return cmp.Or(cmp.Compare(b.cosine, a.cosine), b.memory.CreatedAt.Compare(a.memory.CreatedAt), strings.Compare(a.memory.ID, b.memory.ID))
	})
	if at >= k {
		return list
	}
	list = slices.Insert(list, at, n)
	return list[:min(len(list), k)]
}

// embedSome embeds the texts at some places.
func (l *Local) embedSome(ctx context.Context, at []int, texts []string, vectors [][]float32) error {
	if len(at) == 0 {
		return nil
	}
	some := make([]string, len(at))
	for k, i := range at {
		some[k] = texts[i]
	}
	made, err := embed.Batched(l.embedder, importBatch).EmbedDocuments(ctx, some)
	if err != nil {
		return err
	}
	for k, i := range at {
		vectors[i] = made[k]
	}
	return nil
}

// Reembed makes the vectors of all memories anew with the store's embedder, after which it fits the store. All of it is one
// transaction. Memories that are added meanwhile by another process with the old embedder keep its vectors.
func (l *Local) Reembed(ctx context.Context) error {
	var ids, texts []string
	err := l.backend.Scan(ctx, Scope{}, Memories, func(r *Record) bool {
		ids, texts = append(ids, r.Memory.ID), append(texts, r.Memory.Text)
		return true
	})
	if err != nil {
		return fmt.Errorf("memory: reembed: %w", err)
	}
	space := Space{Embedder: embed.NameOf(l.embedder)}
	vectors := make([][]float32, len(texts))
	stale := make([]int, len(texts)) // those to be embedded: all of them, then those whose text was changed meanwhile
	for i := range stale {
		stale[i] = i
	}
	for range updateTries {
		if err = l.embedSome(ctx, stale, texts, vectors); err != nil {
			break
		}
		if len(vectors) > 0 {
			space.Dimensions = len(vectors[0])
		}
		err = l.backend.Change(ctx, func(tx Tx) error {
			stale = stale[:0]
			for i, id := range ids {
				m, ok, err := tx.Get(ctx, id)
				if err != nil {
					return err
				}
				if ok && m.Text != texts[i] {
					texts[i], stale = m.Text, append(stale, i)
				}
			}
			if len(stale) > 0 {
				return errOtherText
			}
			for i, id := range ids {
				if err := tx.SetVector(ctx, id, vectors[i]); err != nil {
					return err
				}
			}
			return tx.SetSpace(ctx, space)
		})
		if !errors.Is(err, errOtherText) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("memory: reembed: %w", err)
	}
	l.mu.Lock()
	l.space = space
	l.mu.Unlock()
	return nil
}
