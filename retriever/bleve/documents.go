package bleve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	bleveapi "github.com/blevesearch/bleve_index_api"

	"github.com/ragpilot/ragpilot/retriever/internal/vectorstore"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// Store is an index of documents that the program gives it, in place of files: a store.Searcher with metadata and filters
// and without tenants. Its methods are safe for concurrent use.
type Store struct {
	core     *core
	analyzer string

	writing sync.Mutex // one change at a time
}

// StoreOptions configure a [Store]. The zero value is a store in memory.
type StoreOptions struct {
	// IndexDir is the folder that keeps the documents; as in [Options]. It cannot be that of an [Index]. With another
	// analyzer than it was made with it is refused, as the documents cannot be read anew.
	IndexDir string
	// Analyzer is as in [Options].
	Analyzer string
}

// OpenStore opens or makes a store. It fails if the analyzer is unknown, if the folder holds something else, is damaged
// ([ErrCorrupt]) or in use ([ErrLocked]).
func OpenStore(o StoreOptions) (*Store, error) {
	if o.Analyzer == "" {
		o.Analyzer = DefaultAnalyzer
	}
	c, err := newCore(map[string]string{"StoreOptions.Analyzer": o.Analyzer})
	if err != nil {
		return nil, fmt.Errorf("bleve: %w", err)
	}
	if o.IndexDir == "" {
		err = c.create("")
	} else {
		f := folder{core: c}
		if err = f.open(o.IndexDir, "documents-"+o.Analyzer); err == nil && f.rebuilt {
			err = errors.Join(fmt.Errorf("the folder holds an index of another kind or analyzer, want StoreOptions.Analyzer = %q", o.Analyzer),
				c.close(), f.drop())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("bleve: StoreOptions.IndexDir = %q: %w", o.IndexDir, err)
	}
	return &Store{core: c, analyzer: o.Analyzer}, nil
}

// Search finds documents, as [store.Searcher] says.
func (s *Store) Search(ctx context.Context, q store.Query) ([]store.Hit, error) {
	return s.core.hits(ctx, q, found.document)
}

// document is what others see of a document that was found.
func (f found) document() (store.Hit, error) {
	r, err := readRecord(f.record)
	if err != nil {
		return store.Hit{}, err
	}
	return store.Hit{ID: f.id, Text: f.text, Score: f.score, Version: store.Version(f.text), Metadata: r.Metadata}, nil
}

// Upsert stores the documents; one of the same ID is replaced, and of several with one ID the last counts. Nothing is
// stored if one of them is bad (store.ErrBadDocument). When ctx ends, some may be stored: up to 500 are written at once,
// in the order given. After Upsert has returned, searches find them.
func (s *Store) Upsert(ctx context.Context, docs []store.Document) error {
	docs, err := vectorstore.LastOfEach(docs, false)
	if err != nil {
		return fmt.Errorf("bleve: upsert: %w", err)
	}
	entries := make([]entry, 0, len(docs))
	for _, d := range docs {
		e := entry{id: d.ID, text: store.ValidText(d.Text), analyzer: s.analyzer, record: record{Metadata: d.Metadata}}
		if _, err := e.document(); err != nil { // metadata that cannot be stored
			return fmt.Errorf("bleve: upsert: %w", err)
		}
		entries = append(entries, e)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	for start := 0; start < len(entries); start += batchBlocks {
		if err := s.put(ctx, entries[start:min(start+batchBlocks, len(entries))]); err != nil {
			return fmt.Errorf("bleve: upsert: %w", err)
		}
	}
	if err := s.core.alive(ctx); err != nil {
		return fmt.Errorf("bleve: upsert: %w", err)
	}
	return nil
}

func (s *Store) put(ctx context.Context, entries []entry) error {
	if err := s.core.alive(ctx); err != nil {
		return err
	}
	if err := s.core.analyze(ctx, entries); err != nil {
		return err
	}
	ids := make([]string, len(entries))
	var added total
	for i := range entries {
		e := &entries[i]
		e.record.Words = len(e.tokens)
		added = added.plus(total{1, len(e.tokens)})
		ids[i] = e.id
	}
	old, err := s.core.sizes(ids)
	if err != nil {
		return err
	}
	return s.core.apply(change{put: entries, totals: s.totals(added, old)})
}

// Delete removes documents; those that do not exist are not an error. The tenant must be empty.
func (s *Store) Delete(ctx context.Context, tenant string, ids ...string) error {
	if tenant != "" {
		return fmt.Errorf("bleve: delete: %w: tenant = %q, and the store has no tenants", store.ErrBadQuery, tenant)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.core.alive(ctx); err != nil {
		return fmt.Errorf("bleve: delete: %w", err)
	}
	old, err := s.core.sizes(ids)
	if err == nil {
		err = s.core.apply(change{remove: ids, totals: s.totals(total{}, old)})
	}
	if err != nil {
		return fmt.Errorf("bleve: delete: %w", err)
	}
	return nil
}

// Len returns the number of documents.
func (s *Store) Len() int { return s.core.stats.Load().blocks }

// Close frees the store, after the searches that are under way. A second Close does nothing.
func (s *Store) Close() error {
	if err := s.core.close(); err != nil {
		return fmt.Errorf("bleve: close: %w", err)
	}
	return nil
}

func (s *Store) totals(added, removed total) map[string]total {
	totals := maps.Clone(s.core.totals)
	totals[s.analyzer] = totals[s.analyzer].plus(added).minus(removed)
	return totals
}

// alive returns the cause of the context's end, or ErrClosed after close.
func (c *core) alive(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.index == nil {
		return ErrClosed
	}
	return nil
}

// sizes returns what the documents with these IDs take part in the totals with. An ID that is given twice counts once.
func (c *core) sizes(ids []string) (sum total, err error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.index == nil {
		return sum, ErrClosed
	}
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		if seen[id] {
			continue
		}
		seen[id] = true
		doc, err := c.index.Document(id)
		if err != nil {
			return sum, err
		}
		if doc == nil {
			continue
		}
		r, err := storedRecord(doc)
		if err != nil {
			return sum, err
		}
		sum = sum.plus(total{1, r.Words})
	}
	return sum, nil
}

func storedRecord(doc bleveapi.Document) (r record, err error) {
	doc.VisitFields(func(f bleveapi.Field) {
		if f.Name() == recordField {
			r, err = readRecord(string(f.Value()))
		}
	})
	return r, err
}
