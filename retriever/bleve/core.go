package bleve

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	bleveindex "github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/document"
	"github.com/blevesearch/bleve/v2/mapping"
	"github.com/blevesearch/bleve/v2/search"
	bleveapi "github.com/blevesearch/bleve_index_api"

	"github.com/ragpilot/ragpilot/retriever/store"
)

const (
	// batchBlocks is the number of blocks that are given to bleve at once: each batch becomes one segment.
	batchBlocks = 500
	// Stored beside a block: its text, and its record.
	bodyField, recordField = "body", "record"
	// totalsKey is the internal key of the totals.
	totalsKey = "totals"
)

// entry is a block on its way into the index.
type entry struct {
	id, text string
	analyzer string // name
	record   record

	tokens analysis.TokenStream // set by analyze
}

// record is what is stored beside a block's text.
type record struct {
	Page     int            `json:"page,omitempty"`     // of a PDF, from 1
	Words    int            `json:"words,omitempty"`    // of a document of a [Store]
	Metadata map[string]any `json:"metadata,omitempty"` // the same
}

// total counts what is indexed by one analyzer. BM25 needs the average length.
type total struct {
	Blocks int `json:"blocks"`
	Words  int `json:"words"`
}

func (t total) plus(o total) total { return total{t.Blocks + o.Blocks, t.Words + o.Words} }
func (t total) minus(o total) total {
	return total{t.Blocks - o.Blocks, t.Words - o.Words}
}

// core is a bleve index of blocks, in memory or in a folder, with the statistics that scoring needs. Changes are made by
// one goroutine at a time; searches may run beside them, and see each batch whole or not at all.
type core struct {
	analyzers map[string]analysis.Analyzer // by name; never changed
	totals    map[string]total             // by analyzer; used by the goroutine that changes the index only
	stats     atomic.Pointer[stats]

	mu    sync.RWMutex     // held for reading while the index is used, so that close waits
	index bleveindex.Index // guarded by mu; nil after close
}

// stats are read by searches.
type stats struct {
	bm25      *search.BM25Stats
	analyzers []string // that blocks were indexed with, sorted
	blocks    int
}

// textField names the field of the blocks that an analyzer cut into words. Each analyzer has its own: the same word
// would else mean different terms in one field.
func textField(analyzer string) string { return "text:" + analyzer }

// newMapping says how blocks are scored.
func newMapping() *mapping.IndexMappingImpl {
	m := bleveindex.NewIndexMapping()
	m.ScoringModel = bleveapi.BM25Scoring
	return m
}

// analyzer returns the analyzer with this name. The field is where the name comes from, for the error.
func analyzer(m *mapping.IndexMappingImpl, field, name string) (analysis.Analyzer, error) {
	a := m.AnalyzerNamed(name)
	if a == nil {
		return nil, fmt.Errorf("%s = %q, want the name of a registered analyzer; retriever/bleve/languages has those of 21 languages", field,
			name)
	}
	return a, nil
}

// load reads the totals of an index that has some.
func (c *core) load() error {
	c.totals = map[string]total{}
	raw, err := c.index.GetInternal([]byte(totalsKey))
	if err != nil {
		return err
	}
	if raw != nil {
		if err := json.Unmarshal(raw, &c.totals); err != nil {
			return fmt.Errorf("%w: totals: %w", ErrCorrupt, err)
		}
	}
	c.publish()
	return nil
}

// publish makes the totals known to searches.
//
// Left alone, bleve would take the number of different terms for the number of terms and count a term once per segment,
// so that scores would change with the merging of segments in the background. It divides the words of a field by the
// blocks of all fields, so words are scaled here to make that the average of the blocks that have the field.
func (c *core) publish() {
	s := &stats{bm25: &search.BM25Stats{FieldCardinality: map[string]int{}}}
	for _, t := range c.totals {
		s.blocks += t.Blocks
	}
	for name, t := range c.totals {
		if t.Blocks > 0 {
			s.analyzers = append(s.analyzers, name)
			s.bm25.FieldCardinality[textField(name)] = int(float64(t.Words) / float64(t.Blocks) * float64(s.blocks))
		}
	}
	s.bm25.DocCount = float64(s.blocks)
	c.stats.Store(s)
}

// analyze cuts the entries' texts into words, on all processors. bleve would do it as well, but does not
// report how many words there are before the batch is written, and the totals must be written with it.
func (c *core) analyze(ctx context.Context, entries []entry) error {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(entries)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(entries) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				e := &entries[i]
				e.tokens = c.analyzers[e.analyzer].Analyze([]byte(e.text))
			}
		})
	}
	workers.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// analyzed gives bleve the words that were cut already.
type analyzed struct{ tokens analysis.TokenStream }

func (a analyzed) Analyze([]byte) analysis.TokenStream { return a.tokens }

// change is what one batch does: all of it, or nothing.
type change struct {
	put      []entry
	remove   []string          // IDs
	internal map[string][]byte // records beside the blocks
	totals   map[string]total  // after the change
}

// apply carries a change out. The entries must have been analyzed.
func (c *core) apply(ch change) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.index == nil {
		return ErrClosed
	}
	batch := c.index.NewBatch()
	for _, id := range ch.remove {
		batch.Delete(id)
	}
	for _, e := range ch.put {
		doc, err := e.document()
		if err != nil {
			return err
		}
		if err := batch.IndexAdvanced(doc); err != nil {
			return fmt.Errorf("block %s: %w", e.id, err)
		}
	}
	for key, value := range ch.internal {
		batch.SetInternal([]byte(key), value)
	}
	raw, err := json.Marshal(ch.totals)
	if err != nil {
		return err
	}
	batch.SetInternal([]byte(totalsKey), raw)
	if err := c.index.Batch(batch); err != nil {
		return err
	}
	c.totals = ch.totals
	c.publish()
	return nil
}

func (e *entry) document() (*document.Document, error) {
	doc := document.NewDocument(e.id)
	doc.AddField(document.NewTextFieldCustom(textField(e.analyzer), nil, []byte(e.text), bleveapi.IndexField, analyzed{e.tokens}))
	doc.AddField(document.NewTextFieldCustom(bodyField, nil, []byte(e.text), bleveapi.StoreField, nil))
	if e.record.Page > 0 || e.record.Words > 0 || len(e.record.Metadata) > 0 {
		raw, err := json.Marshal(e.record)
		if err != nil {
			return nil, fmt.Errorf("%w: %q: metadata: %w", store.ErrBadDocument, e.id, err)
		}
		doc.AddField(document.NewTextFieldCustom(recordField, nil, raw, bleveapi.StoreField, nil))
	}
	return doc, nil
}

// close frees the index after the searches that are under way. A second close does nothing.
func (c *core) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.index == nil {
		return nil
	}
	err := c.index.Close()
	c.index = nil
	return err
}

// readRecord reads what document wrote; a block without one has the zero record.
func readRecord(raw any) (record, error) {
	var r record
	text, ok := raw.(string)
	if !ok {
		return r, nil
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return r, fmt.Errorf("%w: record of a block: %w", ErrCorrupt, err)
	}
	return r, nil
}
