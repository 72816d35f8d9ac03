package bleve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	bleveindex "github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/document"
	"github.com/blevesearch/bleve/v2/index/scorch"
	"github.com/blevesearch/bleve/v2/mapping"
	"github.com/blevesearch/bleve/v2/search"
	bleveapi "github.com/blevesearch/bleve_index_api"

	"github.com/ragpilot/ragpilot/contextpilot"
)

const (
	textField = "text"
	// batchSize is the number of blocks that are given to bleve at once: each batch becomes one segment.
	batchSize = 500
)

// build reads, cuts and indexes fsys.
func build(ctx context.Context, fsys fs.FS, opts Options) (*Index, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	blocks, skipped, err := load(ctx, fsys, opts)
	if err != nil {
		return nil, err
	}
	if len(blocks) == 0 {
		errs := []error{fmt.Errorf("%w: Options.Include = %q", ErrNoBlocks, opts.Include)}
		for _, s := range skipped {
			errs = append(errs, s.Err)
		}
		return nil, errors.Join(errs...)
	}
	m, err := newMapping(opts.Analyzer)
	if err != nil {
		return nil, err
	}
	// An empty path keeps the index in memory. bleve.NewMemOnly is no way to get there: it takes the older index
	// type, which knows no field lengths, so that scoring falls back to TF-IDF without a word, and which took 3.4
	// times as long and 5 times the memory to build 1,000 blocks.
	index, err := bleveindex.NewUsing("", m, scorch.Name, scorch.Name, nil)
	if err != nil {
		return nil, err
	}
	x := &Index{index: index, blocks: make(map[string]contextpilot.Block, len(blocks)), skipped: skipped}
	words, err := x.fill(ctx, m, blocks)
	if err != nil {
		return nil, errors.Join(err, index.Close())
	}
	x.stats = &search.BM25Stats{DocCount: float64(len(blocks)), FieldCardinality: map[string]int{textField: words}}
	return x, nil
}

// newMapping says how queries are analyzed and scored.
func newMapping(analyzer string) (*mapping.IndexMappingImpl, error) {
	m := bleveindex.NewIndexMapping()
	m.ScoringModel = bleveapi.BM25Scoring
	m.DefaultAnalyzer = analyzer
	m.DefaultField = textField
	if m.AnalyzerNamed(analyzer) == nil {
		return nil, fmt.Errorf("Options.Analyzer = %q, want the name of a registered analyzer", analyzer)
	}
	return m, nil
}

// fill indexes the blocks and returns the total length of their texts in search terms.
func (x *Index) fill(ctx context.Context, m *mapping.IndexMappingImpl, blocks []contextpilot.Block) (words int, err error) {
	analyzer := m.AnalyzerNamed(m.DefaultAnalyzer)
	for start := 0; start < len(blocks); start += batchSize {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		batch := x.index.NewBatch()
		part := blocks[start:min(start+batchSize, len(blocks))]
		fields := make([]*document.TextField, len(part))
		for i, b := range part {
			// Texts are kept in x.blocks, so bleve neither stores nor sorts by them.
			fields[i] = document.NewTextFieldCustom(textField, nil, []byte(b.Text), bleveapi.IndexField, analyzer)
			doc := document.NewDocument(b.ID)
			doc.AddField(fields[i])
			if err := batch.IndexAdvanced(doc); err != nil {
				return 0, fmt.Errorf("block %s: %w", b.ID, err)
			}
			x.blocks[b.ID] = b
		}
		if err := x.index.Batch(batch); err != nil {
			return 0, err
		}
		for _, f := range fields {
			words += f.AnalyzedLength()
		}
	}
	return words, nil
}
