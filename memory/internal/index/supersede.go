package index

import (
	"cmp"
	"slices"
)

// A fact that was stated anew is often worded otherwise, so that the question may be nearer to the old statement. Where two of
// the best memories are about the same matter, and the question fits both about equally well, the newer one comes first.
const (
	// settleDepth is how many of the best memories are compared with one another.
	settleDepth = 24
	// sameMatter is the cosine of two memories above which they may be about the same matter, and alikeMatter that of two that are worded
	// alike: "I drive a Fiat", "That one broke, now I drive a Skoda". What is said beside the fact moves a vector far.
	sameMatter  = 0.5
	alikeMatter = 0.2
	// equalFit is how much less the newer one may score.
	equalFit = 0.2
	// equalWords is how much less of the question's words the newer one may have. It separates an update from the same kind of
	// fact about another person: "My sister's birthday", "My brother's birthday".
	equalWords = 0.15
)

// settle decides between the best memories, of which there may be more than it looks at: by age where scores are about equal, then by what
// replaces what.
func (x *Index) settle(found []Found) {
	best := found[:min(len(found), settleDepth)]
	byAge := make([]int, len(best))
	for i := range byAge {
		byAge[i] = i
	}
	slices.SortStableFunc(byAge, func(a, b int) int {
		return cmp.Compare(x.entries[best[a].place].created, x.entries[best[b].place].created)
	})
	rank := 0
	for i, at := range byAge {
		if i > 0 && x.entries[best[at].place].created != x.entries[best[byAge[i-1]].place].created {
			rank = i
		}
		best[at].Score = min(best[at].Score+recencyWeight*float64(rank)/settleDepth, 1)
	}
	slices.SortFunc(best, x.better)
	x.supersede(best)
}

// supersede moves a memory behind a newer one about the same matter that says as much about the question.
func (x *Index) supersede(found []Found) {
	depth := len(found)
	rows := make([][]float32, depth)
	for i := range rows {
		rows[i] = x.vectors.row(int(found[i].place))
	}
	order := make([]int, depth) // indices into found as it was
	for i := range order {
		order[i] = i
	}
	for at := 1; at < depth; at++ {
		// The memory at this place moves up to the first older one that it replaces.
		newer := order[at]
		for to := range at {
			if x.replaces(found[newer], found[order[to]], rows[newer], rows[order[to]]) {
				copy(order[to+1:at+1], order[to:at])
				order[to] = newer
				break
			}
		}
	}
	old := slices.Clone(found)
	scores := make([]float64, depth) // stay in descending order
	for i := range old {
		scores[i] = old[i].Score
	}
	for i, from := range order {
		found[i] = old[from]
		found[i].Score = scores[i]
	}
}

func (x *Index) replaces(newer, older Found, a, b []float32) bool {
	n, o := &x.entries[newer.place], &x.entries[older.place]
	if n.created <= o.created || older.Score-newer.Score > equalFit || newer.Lexical+equalWords < older.Lexical {
		return false
	}
	var cosine float32
	for i := range a {
		cosine += a[i] * b[i]
	}
	if cosine >= sameMatter {
		return true
	}
	// In long texts a word of the question counts so little that the difference of equalWords says nothing.
	return (cosine >= alikeMatter || n.bare || o.bare) && 2*newer.Lexical >= older.Lexical && x.alike(n, o)
}

// alike reports whether two memories have a phrase in common. A statement about the user is not replaced by one about others: "Our dog
// is called Luna", "Greta's dog is called Rex".
func (x *Index) alike(newer, older *entry) bool {
	if older.firstPerson && !newer.firstPerson {
		return false
	}
	others := x.phrases[older.phrases.first:older.phrases.last]
	for _, p := range x.phrases[newer.phrases.first:newer.phrases.last] {
		if _, ok := slices.BinarySearch(others, p); ok {
			return true
		}
	}
	return false
}
