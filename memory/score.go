package memory

import "math"

// DefaultThreshold is the semantic score below which a memory is not found (Mem0 2.x).
const DefaultThreshold = 0.1

// combine scores the hits as Mem0 2.x does: the sum of semantic score, lexical score and the boost by entities, divided by
// what the sum could be: 1, and 1 more if any memory has a word of the query, and 0.5 more if any has an entity of it. words
// are BM25 scores by ID.
//
// Mem0 looks only at the max(4k, 60) memories nearest by vector; here all of the scope's are looked at, which gives the
// same order where they are no more.
func combine(hits []Hit, words map[string]float64, terms int) {
	parts, named := 1.0, 0.0
	for i := range hits {
		if raw := words[hits[i].Memory.ID]; raw > 0 {
			hits[i].Lexical = squash(raw, terms)
			parts = 2
		}
		if hits[i].Entity > 0 {
			named = entityWeight
		}
	}
	for i := range hits {
		hits[i].Score = min((hits[i].Semantic+hits[i].Lexical+hits[i].Entity)/(parts+named), 1)
	}
}

// squash brings a BM25 score to the range from 0 to 1 by a logistic function. The more terms a query has, the higher are
// its scores: the middle moves with them (Mem0 2.x).
func squash(raw float64, terms int) float64 {
	middle, steepness := 12.0, 0.5
	switch {
	case terms <= 3:
		middle, steepness = 5, 0.7
	case terms <= 6:
		middle, steepness = 7, 0.6
	case terms <= 9:
		middle, steepness = 9, 0.5
	case terms <= 15:
		middle, steepness = 10, 0.5
	}
	return 1 / (1 + math.Exp(-steepness*(raw-middle)))
}
