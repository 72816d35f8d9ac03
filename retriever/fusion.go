package retriever

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tmc/langchaingo/schema"
)

// DefaultRRF is the constant of [RRF] in Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and
// individual Rank Learning Methods" (SIGIR 2009).
const DefaultRRF = 60

// Found is what one source said of a document.
type Found struct {
	Source string
	Weight float64
	// Rank is the document's place in the source's result, from 1.
	Rank int
	// Score is the source's, and Low and High are the smallest and largest score of its result.
	Score, Low, High float64
}

// Fusion returns the score of a document that one or several sources found, larger for better. It is called
// concurrently, keeps nothing, and must depend on its argument alone.
type Fusion func(found []Found) float64

// RRF is reciprocal rank fusion: the sum of weight / (k + rank). It needs no scores, so the sources may measure
// relevance in whatever way.
func RRF(k float64) Fusion {
	return func(found []Found) float64 {
		sum := 0.0
		for _, f := range found {
			sum += f.Weight / (k + float64(f.Rank))
		}
		return sum
	}
}

// WeightedScores is the sum of weight × score, with each source's scores stretched to 0…1. A source whose scores are
// all equal counts as if each were 1. It suits sources whose scores say more than their ranks.
func WeightedScores() Fusion {
	return func(found []Found) float64 {
		sum := 0.0
		for _, f := range found {
			share := 1.0
			if f.High > f.Low {
				share = (f.Score - f.Low) / (f.High - f.Low)
			}
			sum += f.Weight * share
		}
		return sum
	}
}

// Reranker orders documents anew, for example by a model that reads them. It may leave documents out; it must not
// change those it is given, and returns when ctx ends. If it fails, the fused order stays, and the report says so. It is
// called concurrently.
type Reranker interface {
	Rerank(ctx context.Context, query string, docs []schema.Document) ([]schema.Document, error)
}

func rerank(ctx context.Context, r Reranker, query string, docs []schema.Document) (out []schema.Document, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("%w: %v", ErrPanic, p)
		}
	}()
	return r.Rerank(ctx, query, slices.Clone(docs))
}

// candidate is a document, and who found it.
type candidate struct {
	doc    schema.Document
	id     string
	copies []string // other IDs of its text
	found  []Found
	score  float64
}

// metadata copies the document's and adds what is known of it.
func (c *candidate) metadata(missing []string) map[string]any {
	m := make(map[string]any, len(c.doc.Metadata)+3)
	maps.Copy(m, c.doc.Metadata)
	names := make([]string, len(c.found))
	for i, f := range c.found {
		names[i] = f.Source
	}
	m[KeySources] = names
	if len(c.copies) > 0 {
		m[KeyCopies] = c.copies
	}
	if len(missing) > 0 {
		m[KeyMissing] = slices.Clone(missing)
	}
	return m
}

// fuse makes one list of the sources' lists. Documents of equal score are in the order of the first source that found
// them, and there by rank.
func (f *FanIn) fuse(answers []answer, missing []string) []schema.Document {
	list := f.candidates(answers)
	for i := range list {
		list[i].score = f.cfg.Fusion(list[i].found)
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	docs := make([]schema.Document, len(list))
	for i, c := range list {
		docs[i] = schema.Document{PageContent: c.doc.PageContent, Metadata: c.metadata(missing), Score: float32(c.score)}
	}
	return docs
}

// candidates returns the different documents in the order of sources and ranks. Two are the same document if their texts
// are: a copy under another ID is one, and an ID whose text has changed is not. Of each the first one found is kept.
func (f *FanIn) candidates(answers []answer) []candidate {
	n := 0
	for _, a := range answers {
		n += len(a.docs)
	}
	list := make([]candidate, 0, n)
	at := make(map[string]int, n)
	for s, a := range answers {
		low, high := scores(a.docs)
		for rank, d := range a.docs {
			i, seen := at[d.PageContent]
			id := idOf(d.Metadata, f.cfg.IDKeys)
			if !seen {
				i = len(list)
				at[d.PageContent] = i
				list = append(list, candidate{doc: d, id: id})
			}
			c := &list[i]
			if id != "" && id != c.id && !slices.Contains(c.copies, id) {
				c.copies = append(c.copies, id)
			}
			if len(c.found) > 0 && c.found[len(c.found)-1].Source == f.cfg.Sources[s].Name {
				continue // twice in one source: its better rank counts
			}
			c.found = append(c.found, Found{
				Source: f.cfg.Sources[s].Name, Weight: f.cfg.Sources[s].Weight, Rank: rank + 1, Score: float64(d.Score), Low: low, High: high,
			})
		}
	}
	return list
}

func scores(docs []schema.Document) (low, high float64) {
	for i, d := range docs {
		s := float64(d.Score)
		if i == 0 {
			low, high = s, s
		}
		low, high = min(low, s), max(high, s)
	}
	return low, high
}
