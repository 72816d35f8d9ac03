package retriever

import (
	"errors"
	"time"
)

// Report is the outcome of one search of a [FanIn].
type Report struct {
	Query string
	// Sources are in the order of the configuration. Empty if the context of the search ended.
	Sources []SourceReport
	// Documents is the length of the result.
	Documents int
	// Rerank is the reranker's error. The result is then in the fused order.
	Rerank error
	// Err is the error of the search.
	Err error
}

// SourceReport is what one source gave.
type SourceReport struct {
	Name string
	// Documents is how many were taken of it.
	Documents int
	// Took is how long it was waited for, or how long it took.
	Took time.Duration
	// Err is why it gave nothing: its own error, ErrLate or ErrBusy. Nil if it answered, with documents or without.
	Err error
	// Late: it did not answer in its time.
	Late bool
}

// Missing returns the names of the sources that gave nothing because of an error.
func (r Report) Missing() []string {
	var names []string
	for _, s := range r.Sources {
		if s.Err != nil {
			names = append(names, s.Name)
		}
	}
	return names
}

// Partial reports whether a source is missing.
func (r Report) Partial() bool { return len(r.Missing()) > 0 }

func (f *FanIn) report(query string, found []answer) Report {
	r := Report{Query: query, Sources: make([]SourceReport, len(found))}
	for i, a := range found {
		r.Sources[i] = SourceReport{
			Name: f.cfg.Sources[i].Name, Documents: len(a.docs), Took: a.took, Err: a.err, Late: errors.Is(a.err, ErrLate),
		}
	}
	return r
}
