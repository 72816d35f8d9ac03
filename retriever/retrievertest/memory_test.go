package retrievertest_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/ragpilot/ragpilot/retriever/retrievertest"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// memory is the slow store that is obviously right: it compares the question with every document.
type memory struct {
	tenants  bool
	embedder retrievertest.Embedder

	mu     sync.Mutex
	docs   map[[2]string]store.Document // by tenant and ID; guarded by mu
	closed bool                         // guarded by mu
}

func newMemory(tenants bool) *memory {
	return &memory{tenants: tenants, docs: map[[2]string]store.Document{}}
}

func (m *memory) Search(ctx context.Context, q store.Query) ([]store.Hit, error) {
	if err := q.Check(m.tenants); err != nil {
		return nil, err
	}
	want, err := m.embedder.EmbedQuery(ctx, q.Text)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, store.ErrClosed
	}
	var hits []store.Hit
	for _, d := range m.docs {
		if d.Tenant != q.Tenant || !q.Filter.Matches(d.Metadata) {
			continue
		}
		vector, err := m.embedder.EmbedQuery(ctx, d.Text)
		if err != nil {
			return nil, err
		}
		h := store.Hit{ID: d.ID, Text: d.Text, Version: store.Version(d.Text), Metadata: maps.Clone(d.Metadata)}
		for i := range want {
			h.Score += float64(want[i] * vector[i])
		}
		hits = append(hits, h)
	}
	store.Sort(hits)
	return hits[:min(q.K, len(hits))], nil
}

func (m *memory) Upsert(ctx context.Context, docs []store.Document) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return store.ErrClosed
	}
	for _, d := range docs {
		if err := d.Check(m.tenants); err != nil {
			return err
		}
		d.Text = store.ValidText(d.Text)
		metadata, err := store.ValidMetadata(d.Metadata)
		if err != nil {
			return fmt.Errorf("document %q: %w", d.ID, err)
		}
		d.Metadata = metadata
		m.docs[[2]string{d.Tenant, d.ID}] = d
	}
	return nil
}

func (m *memory) Delete(ctx context.Context, tenant string, ids ...string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := store.CheckTenant(tenant, m.tenants); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return store.ErrClosed
	}
	maps.DeleteFunc(m.docs, func(key [2]string, _ store.Document) bool {
		return key[0] == tenant && slices.Contains(ids, key[1])
	})
	return nil
}

func (m *memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}
