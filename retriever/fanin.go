package retriever

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tmc/langchaingo/schema"
)

// Errors of a [FanIn], for errors.Is.
var (
	// ErrNoSource: no source gave a result, or one that is required did not.
	ErrNoSource = errors.New("no source gave a result")
	// ErrLate: a source did not answer in its time.
	ErrLate = errors.New("source is late")
	// ErrBusy: a source was not asked, as too many of its late answers are still awaited.
	ErrBusy = errors.New("source is busy")
	// ErrPanic: a source or reranker panicked.
	ErrPanic = errors.New("panic")
	// ErrBadSource: a configuration makes no sense; the error names the field.
	ErrBadSource = errors.New("bad configuration")
)

// maxLate bounds the calls of one source that are still running after their time: sources that do not heed their
// context must not gather goroutines without end.
const maxLate = 32

// Source is one of the retrievers behind a [FanIn].
type Source struct {
	// Name is what reports and metadata call it. Empty: its number, from 1.
	Name string
	// Retriever is asked by one goroutine for each search. It must return when its context ends.
	Retriever schema.Retriever
	// Limit bounds the documents taken of it, best first. 0: all.
	Limit int
	// Weight is how much its ranks and scores count. 0: 1.
	Weight float64
	// Timeout bounds its search. 0: only FanInConfig.Timeout does.
	Timeout time.Duration
	// Required makes its failure that of the whole search.
	Required bool
}

// FanInConfig configures a [FanIn]. The zero value of everything but Sources is the recommended setup.
type FanInConfig struct {
	// Sources are asked at the same time; at least one. Their order breaks ties.
	Sources []Source
	// Timeout bounds a search: what is there by then is the result. 0: only the context does.
	Timeout time.Duration
	// Fusion gives each document its score; nil: RRF(60).
	Fusion Fusion
	// Limit bounds the documents of the result, best first, before they are reranked. 0: all.
	Limit int
	// Reranker orders the fused documents; nil: none.
	Reranker Reranker
	// IDKeys name the metadata keys that hold a document's ID, as [WithIDKeys] does; nil: "id", "_id", "doc_id".
	IDKeys []string
	// Report is called with what became of each search, before it returns and by the goroutine that searches; nil: not.
	Report func(context.Context, Report)
}

// Keys that a [FanIn] adds to the metadata of its documents.
const (
	// KeySources holds the names of the sources that found the document, a []string in the order of the configuration.
	KeySources = "ragpilot.sources"
	// KeyMissing holds the names of the sources that gave nothing because they failed or were late, a []string. It is
	// in every document of a partial result, and in none of a complete one.
	KeyMissing = "ragpilot.missing"
	// KeyCopies holds the IDs under which the same text was found besides, a []string in the order in which they were
	// found. It is missing where there are none.
	KeyCopies = "ragpilot.copies"
)

// FanIn asks several retrievers at the same time and fuses what they find. It satisfies schema.Retriever, and is safe
// for concurrent use if its sources are. It keeps no goroutine between searches: one that is still running when its
// search is over ends when the source heeds its context.
type FanIn struct {
	cfg  FanInConfig
	late []atomic.Int32 // by source: calls that run beyond their time
}

var _ schema.Retriever = (*FanIn)(nil)

// NewFanIn checks and copies the configuration.
func NewFanIn(cfg FanInConfig) (*FanIn, error) {
	cfg.Sources = slices.Clone(cfg.Sources)
	if len(cfg.Sources) == 0 {
		return nil, fmt.Errorf("%w: FanInConfig.Sources is empty", ErrBadSource)
	}
	names := map[string]bool{}
	for i := range cfg.Sources {
		s := &cfg.Sources[i]
		if s.Name == "" {
			s.Name = strconv.Itoa(i + 1)
		}
		if s.Weight == 0 {
			s.Weight = 1
		}
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("%w: source %q: %w", ErrBadSource, s.Name, err)
		}
		if names[s.Name] {
			return nil, fmt.Errorf("%w: source %q is named twice", ErrBadSource, s.Name)
		}
		names[s.Name] = true
	}
	if cfg.Limit < 0 || cfg.Timeout < 0 {
		return nil, fmt.Errorf("%w: FanInConfig.Limit %d, Timeout %v, want none below 0", ErrBadSource, cfg.Limit, cfg.Timeout)
	}
	if cfg.Fusion == nil {
		cfg.Fusion = RRF(DefaultRRF)
	}
	if cfg.IDKeys == nil {
		cfg.IDKeys = defaultIDKeys()
	}
	if cfg.Report == nil {
		cfg.Report = func(context.Context, Report) {}
	}
	return &FanIn{cfg: cfg, late: make([]atomic.Int32, len(cfg.Sources))}, nil
}

func (s *Source) check() error {
	switch {
	case s.Retriever == nil:
		return errors.New("its Retriever is nil")
	case s.Limit < 0:
		return fmt.Errorf("its Limit is %d, want 0 or more", s.Limit)
	case s.Timeout < 0:
		return fmt.Errorf("its Timeout is %v, want 0 or more", s.Timeout)
	case s.Weight < 0 || math.IsNaN(s.Weight) || math.IsInf(s.Weight, 0):
		return fmt.Errorf("its Weight is %v, want a number of 0 or more", s.Weight)
	}
	return nil
}

// Merge returns a retriever that asks all of in at the same time and fuses their ranks, see [FanIn]. A retriever that
// fails is left out and named in the documents' metadata under [KeyMissing]; it is an error if all of them do. It panics
// if in is empty or holds nil; [NewFanIn] returns an error instead, and has deadlines, limits and weights.
func Merge(in ...schema.Retriever) schema.Retriever {
	cfg := FanInConfig{Sources: make([]Source, len(in))}
	for i, r := range in {
		cfg.Sources[i].Retriever = r
	}
	f, err := NewFanIn(cfg)
	if err != nil {
		panic(fmt.Errorf("retriever.Merge: %w", err))
	}
	return f
}

// GetRelevantDocuments returns what the sources find, fused, best first. A source that fails, is late or is busy is left
// out and stated: in the report, and under [KeyMissing]. The search fails if no source gives a result, if a required one
// does not, or if ctx ends.
func (f *FanIn) GetRelevantDocuments(ctx context.Context, query string) ([]schema.Document, error) {
	found, err := f.ask(ctx, query)
	report := f.report(query, found)
	var docs []schema.Document
	if err == nil {
		docs, err = f.result(ctx, query, found, &report)
	}
	report.Documents, report.Err = len(docs), err
	f.cfg.Report(ctx, report)
	if err != nil {
		return nil, fmt.Errorf("retriever: %w", err)
	}
	return docs, nil
}

// result fuses what was found if it is enough.
func (f *FanIn) result(ctx context.Context, query string, found []answer, report *Report) ([]schema.Document, error) {
	if err := f.enough(found); err != nil {
		return nil, err
	}
	docs := f.fuse(found, report.Missing())
	if f.cfg.Limit > 0 && len(docs) > f.cfg.Limit {
		docs = docs[:f.cfg.Limit:f.cfg.Limit]
	}
	if f.cfg.Reranker == nil || len(docs) == 0 {
		return docs, nil
	}
	var better []schema.Document
	better, report.Rerank = rerank(ctx, f.cfg.Reranker, query, docs)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case report.Rerank != nil:
		return docs, nil //nolint:nilerr // reported; the fused order is a good one
	}
	return better, nil
}

// enough returns an error if there is no result to be given.
func (f *FanIn) enough(found []answer) error {
	var errs []error
	for i, a := range found {
		if a.err == nil {
			continue
		}
		err := fmt.Errorf("source %q: %w", f.cfg.Sources[i].Name, a.err)
		if f.cfg.Sources[i].Required {
			return fmt.Errorf("%w: %w", ErrNoSource, err)
		}
		errs = append(errs, err)
	}
	if len(errs) < len(found) {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrNoSource, errors.Join(errs...))
}
