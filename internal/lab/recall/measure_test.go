package recall_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/retriever"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// Case is a question and the IDs of the documents that are relevant to it, at least one.
type Case struct {
	Question string
	Relevant map[string]bool
}

// separator stands behind the title of a text.
const separator = ". "

// ByTitle returns the blocks as documents without their titles, and the questions that name titles. Blocks without a title
// are documents, and relevant to nothing.
func ByTitle(blocks *trace.Blocks, questions []string) (docs []store.Document, cases []Case) {
	byTitle := map[string][]string{} // IDs
	for b := range blocks.All() {
		title, text, ok := strings.Cut(b.Text, separator)
		if !ok {
			text = b.Text
		} else if title != "" {
			byTitle[title] = append(byTitle[title], b.ID)
		}
		docs = append(docs, store.Document{ID: b.ID, Text: text})
	}
	for _, q := range questions {
		c := Case{Question: q, Relevant: map[string]bool{}}
		for title, ids := range byTitle {
			if names(q, title) {
				for _, id := range ids {
					c.Relevant[id] = true
				}
			}
		}
		if len(c.Relevant) > 0 {
			cases = append(cases, c)
		}
	}
	return docs, cases
}

// names reports whether the title stands in the question as whole words.
func names(question, title string) bool {
	for from := 0; ; {
		i := strings.Index(question[from:], title)
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(title)
		before, _ := utf8.DecodeLastRuneInString(question[:start])
		after, _ := utf8.DecodeRuneInString(question[end:])
		if !isWord(before) && !isWord(after) {
			return true
		}
		from = start + 1
	}
}

// isWord reports whether a rune is part of a word; the rune of no text, U+FFFD, is none.
func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// Result is what was measured of one store.
type Result struct {
	Name  string
	Depth []int     // the values of k, ascending
	At    []float64 // recall at each of them, from 0 to 1
	Cases int
}

// Measure asks the store each question once, for as many hits as the largest depth. Depth must be ascending. An error of a
// search ends the measurement.
func Measure(ctx context.Context, name string, s store.Searcher, cases []Case, depth ...int) (Result, error) {
	if len(cases) == 0 || len(depth) == 0 {
		return Result{}, errors.New("recall: no questions, or no depth")
	}
	r := Result{Name: name, Depth: depth, At: make([]float64, len(depth)), Cases: len(cases)}
	for _, c := range cases {
		hits, err := s.Search(ctx, store.Query{Text: c.Question, K: depth[len(depth)-1]})
		if err != nil {
			return Result{}, fmt.Errorf("recall: %s: %w", name, err)
		}
		for i, k := range depth {
			found := 0
			for _, h := range hits[:min(k, len(hits))] {
				if c.Relevant[h.ID] {
					found++
				}
			}
			r.At[i] += float64(found) / float64(len(c.Relevant)) / float64(len(cases))
		}
	}
	return r, nil
}

// Table draws the results, which must have been measured at the same depths, in percent.
func Table(results ...Result) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	for i, r := range results {
		if i == 0 {
			fmt.Fprint(w, "recall at\t")
			for _, k := range r.Depth {
				fmt.Fprintf(w, "%d\t", k)
			}
			fmt.Fprint(w, "questions\t\n")
		}
		fmt.Fprintf(w, "%s\t", r.Name)
		for _, v := range r.At {
			fmt.Fprintf(w, "%.1f\t", 100*v)
		}
		fmt.Fprintf(w, "%d\t\n", r.Cases)
	}
	_ = w.Flush()
	return b.String()
}

// Fused is a searcher over stores that a [retriever.FanIn] fuses with equal weights. All of them must answer.
type Fused struct{ fan *retriever.FanIn }

var _ store.Searcher = Fused{}

// Fuse returns a searcher that asks each store for that many hits. A nil fusion is the one that is shipped.
func Fuse(hits int, fusion retriever.Fusion, stores ...store.Searcher) (Fused, error) {
	cfg := retriever.FanInConfig{Fusion: fusion}
	for _, s := range stores {
		cfg.Sources = append(cfg.Sources, retriever.Source{Retriever: store.NewRetriever(s, store.Query{K: hits}), Required: true})
	}
	fan, err := retriever.NewFanIn(cfg)
	return Fused{fan}, err
}

// Search returns the first q.K of the fused documents. Of q it reads the text and K.
func (f Fused) Search(ctx context.Context, q store.Query) ([]store.Hit, error) {
	docs, err := f.fan.GetRelevantDocuments(ctx, q.Text)
	if err != nil {
		return nil, err
	}
	var hits []store.Hit
	for _, d := range docs[:min(q.K, len(docs))] {
		id, _ := d.Metadata[store.KeyID].(string)
		hits = append(hits, store.Hit{ID: id, Text: d.PageContent, Score: float64(d.Score)})
	}
	return hits, nil
}
