package embed

import (
	"context"
	"slices"
	"sync"

	"github.com/ragpilot/ragpilot/internal/base/lru"
)

// Cache is an embedder that remembers vectors. Make it with [Cached].
type Cache struct {
	inner Embedder

	mu      sync.Mutex
	vectors *lru.Cache[cacheKey, []float32] // guarded by mu
	hits    int                             // guarded by mu
	misses  int                             // guarded by mu
}

// cacheKey keeps questions and documents apart: some models embed them differently.
type cacheKey struct {
	query bool
	text  string
}

var (
	_ Embedder = (*Cache)(nil)
	_ Named    = (*Cache)(nil)
)

// Cached returns an embedder that asks inner only for texts it does not remember, at most once for a text that stands
// several times in one call. It keeps the entries least recently used up to that number (at least 1). Errors are not
// remembered. Safe for concurrent use; two calls that miss the same text at the same time both ask inner.
func Cached(inner Embedder, entries int) *Cache {
	return &Cache{inner: inner, vectors: lru.New[cacheKey, []float32](entries)}
}

// Name returns inner's name.
func (c *Cache) Name() string { return NameOf(c.inner) }

// Stats returns how many vectors were found and how many were asked for.
func (c *Cache) Stats() (hits, misses int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hits, c.misses
}

// EmbedDocuments returns a vector for each text; the caller may change them.
func (c *Cache) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	at := map[string][]int{} // text → where it is missing
	var missing []string
	for i, text := range texts {
		if _, known := at[text]; known {
			at[text] = append(at[text], i)
			continue
		}
		if v, ok := c.get(cacheKey{text: text}); ok {
			vectors[i] = v
			continue
		}
		missing = append(missing, text)
		at[text] = []int{i}
	}
	if len(missing) == 0 {
		return vectors, nil
	}
	found, err := documents(ctx, c.inner, missing)
	if err != nil {
		return nil, err
	}
	for i, text := range missing {
		c.put(cacheKey{text: text}, found[i])
		for _, j := range at[text] {
			vectors[j] = slices.Clone(found[i])
		}
	}
	return vectors, nil
}

// EmbedQuery returns the vector of a question; the caller may change it.
func (c *Cache) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	key := cacheKey{query: true, text: text}
	if v, ok := c.get(key); ok {
		return v, nil
	}
	v, err := c.inner.EmbedQuery(ctx, text)
	if err != nil {
		return nil, err
	}
	c.put(key, v)
	return slices.Clone(v), nil
}

func (c *Cache) get(key cacheKey) ([]float32, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.vectors.Get(key)
	if !ok {
		c.misses++
		return nil, false
	}
	c.hits++
	return slices.Clone(v), true
}

func (c *Cache) put(key cacheKey, v []float32) {
	v = slices.Clone(v)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.vectors.Put(key, v)
}
