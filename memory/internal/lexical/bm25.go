package lexical

import "math"

// The usual constants of BM25 (Robertson and Zaragoza 2009, §3.5): k1 says how soon repeats of a term stop counting, b how much
// the length of a text counts.
const (
	k1 = 1.2
	b  = 0.75
)

// Corpus is what BM25 knows of all texts together.
type Corpus struct {
	Texts int
	Terms int // of all texts together
}

// Scores returns the BM25 score of each text for the query, with the IDF that is never negative, ln(1 + (N−n+½)/(n+½)).
// texts must hold every text of the corpus that has a term of the query. A term that the query repeats counts once.
func (c Corpus) Scores(query []string, texts [][]string) []float64 {
	asked := make(map[string]int, len(query)) // term → index into a row of counts
	for _, term := range query {
		if _, ok := asked[term]; !ok {
			asked[term] = len(asked)
		}
	}
	counts := make([][]int, len(texts))
	having := make([]int, len(asked)) // texts that have the term
	for i, text := range texts {
		counts[i] = make([]int, len(asked))
		for _, term := range text {
			if j, ok := asked[term]; ok {
				counts[i][j]++
			}
		}
		for j, n := range counts[i] {
			if n > 0 {
				having[j]++
			}
		}
	}
	idf := make([]float64, len(asked))
	for j, n := range having {
		idf[j] = math.Log1p((float64(max(c.Texts, n)-n) + 0.5) / (float64(n) + 0.5))
	}
	mean := float64(c.Terms) / float64(max(c.Texts, 1))
	scores := make([]float64, len(texts))
	for i, row := range counts {
		long := 1.0
		if mean > 0 {
			long = 1 - b + b*float64(len(texts[i]))/mean
		}
		for j, n := range row {
			f := float64(n)
			scores[i] += idf[j] * f * (k1 + 1) / (f + k1*long)
		}
	}
	return scores
}

// Distinct returns the terms without repeats, in the order in which they first stand.
func Distinct(terms []string) []string {
	seen := make(map[string]bool, len(terms))
	out := make([]string, 0, len(terms))
	for _, t := range terms {
		if !seen[t] {
			seen[t] = true
			out = append(out, t)
		}
	}
	return out
}
