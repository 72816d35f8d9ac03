package index

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/memory/internal/lexical"
)

// The usual constants of BM25 (Robertson and Zaragoza 2009, §3.5): k1 says how soon repeats of a stem stop counting, b how much
// the length of a text counts.
const (
	k1 = 1.2
	b  = 0.75
)

// Weights of what a score is made of, beside the cosine's 1. They were chosen on two seeds of internal/lab/membench and on 40 facts about
// ten relatives that differ in one word. More weight for words helps the latter and harms paraphrases.
const (
	lexicalWeight = 0.15
	entityWeight  = 0.1
	// recencyWeight and secondWeight decide between memories that fit the question about equally well. The newest of the best has
	// all of the first, the oldest nothing: ranks count, not times, so that the order follows from the order of the memories.
	recencyWeight = 0.01
	secondWeight  = 0.01
	// bareFit is what stands in for the cosine of a memory that has no vector yet, where others have one, and all words of the query.
	bareFit = 0.6
)

// entityDamping is Mem0's: a name that many memories have says little.
const entityDamping = 0.001

// Query is what is looked for.
type Query struct {
	Text   string
	Vector []float32 // nil: by words alone
	// Means returns how much the query means an entity, from 0 to 1; nil: entities do not count. It is called once for
	// each name of the scope.
	Means func(entity string) float64
	// Now decides what has expired; zero: expired memories are found, too.
	Now time.Time
	// Least is the semantic score below which a memory is not found, or the lexical one if there is no vector; of a memory that has none
	// yet, 0.6 times the lexical one. At or below 0 every memory
	// may be found.
	Least float64
}

// Found is a memory with its score.
type Found struct {
	ID string
	// Score is from 0 to 1, and so are its parts: the cosine, the share of the query's words that the memory has, weighted by
	// how rare they are, and the boost for a name.
	Score, Semantic, Lexical, Entity float64

	place int32
}

// Rank returns at most n memories, best first. Of equal ones the newer is first, then the one with the lower ID.
func (x *Index) Rank(q Query, n int) []Found {
	scores := x.scores(&q)
	found := x.best(scores, &q, max(n, settleDepth))
	x.settle(found)
	return found[:min(n, len(found))]
}

// parts are the parts of the scores by entry.
type parts struct {
	cosines, lexical, entity []float32
	divisor                  float64
}

func (x *Index) scores(q *Query) parts {
	var p parts
	if x.bare < x.Len() {
		p.cosines = x.vectors.cosines(crew, q.Vector)
	}
	p.lexical = x.wordScores(q.Text, p.cosines == nil)
	p.entity = x.entityScores(q.Means)
	p.divisor = secondWeight
	if p.cosines != nil {
		p.divisor++
	}
	if p.lexical != nil {
		p.divisor += x.lexicalWeight(p.cosines)
	}
	if p.entity != nil {
		p.divisor += entityWeight
	}
	return p
}

// crew computes on all cores.
var crew = compute.NewCrew(runtime.GOMAXPROCS(0))

func (x *Index) lexicalWeight(cosines []float32) float64 {
	if cosines == nil {
		return 1
	}
	return lexicalWeight
}

// best returns the n best entries, best first. It keeps a sorted list of candidates, as few of 100,000 entries pass its lowest.
func (x *Index) best(p parts, q *Query, n int) []Found {
	now := micros(q.Now)
	weight := x.lexicalWeight(p.cosines)
	var top []Found
	for i := range x.entries {
		e := &x.entries[i]
		if e.dead || now != 0 && e.expires != 0 && e.expires <= now {
			continue
		}
		f := Found{place: int32(i)} //nolint:gosec // fewer than 2^31
		if p.cosines != nil {
			f.Semantic = min(max(float64(p.cosines[i]), 0), 1)
		}
		if p.lexical != nil {
			f.Lexical = float64(p.lexical[i])
		}
		if p.entity != nil {
			f.Entity = float64(p.entity[i])
		}
		fit := f.Semantic
		if e.bare && p.cosines != nil {
			fit = bareFit * f.Lexical
		}
		if q.Least > 0 && (p.cosines != nil && fit < q.Least || p.cosines == nil && f.Lexical < q.Least) {
			continue
		}
		sum := fit + weight*f.Lexical + entityWeight*f.Entity
		if !e.second {
			sum += secondWeight
		}
		f.Score = min(sum/p.divisor, 1)
		if len(top) == n && x.better(f, top[n-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, f, x.better)
		top = slices.Insert(top[:min(len(top), n-1)], at, f)
	}
	for i := range top {
		top[i].ID = x.entries[top[i].place].id
	}
	return top
}

// better puts the higher score first, then the newer memory, then the lower ID.
func (x *Index) better(a, b Found) int {
	if c := cmp.Compare(b.Score, a.Score); c != 0 {
		return c
	}
	first, second := &x.entries[a.place], &x.entries[b.place]
	return cmp.Or(cmp.Compare(second.created, first.created), strings.Compare(first.id, second.id))
}

// hit is a stem of the query in an entry.
type hit struct {
	place int32
	asked int16 // index into the query's stems
	word  int32
	count int32
	near  float32 // 1: the very stem
}

// meaning is a word of the vocabulary that a stem of the query may stand for.
type meaning struct {
	asked int16
	near  float32
}

// wordScores returns BM25 of each entry for the stems of a text, divided by the most that they could give: 1 for an entry of
// average length that has them all. wide: words that are spelt alike count in part. nil: no entry has any.
func (x *Index) wordScores(text string, wide bool) []float32 {
	asked := distinct(lexical.Stems(text))
	if len(asked) > maxAsked {
		asked = asked[:maxAsked]
	}
	meanings := x.meanings(asked, wide)
	if len(meanings) == 0 {
		return nil
	}
	wanted := make([]uint8, len(x.words.words)) // a byte for each word is looked at faster than a map
	for word := range meanings {
		wanted[word] = 1
	}
	var hits []hit
	having := map[int32]int{} // by word
	for i := range x.entries {
		e := &x.entries[i]
		for _, s := range x.stems[e.stems.first:e.stems.last] {
			if wanted[s.word()] == 0 {
				continue
			}
			having[s.word()]++
			for _, m := range meanings[s.word()] {
				hits = append(hits, hit{int32(i), m.asked, s.word(), int32(s.count()), m.near}) //nolint:gosec // fewer than 2^31
			}
		}
	}
	return x.bm25(asked, hits, having)
}

// maxAsked bounds the stems of a query that are looked for.
const maxAsked = 1000

// bm25 sums the hits. Of several words that may stand for a stem of the query, an entry's best counts.
func (x *Index) bm25(asked []string, hits []hit, having map[int32]int) []float32 {
	if len(hits) == 0 {
		return nil
	}
	mean := float64(x.length) / float64(max(x.Len(), 1))
	most := 0.0
	rare := make([]float64, len(asked))
	for i, s := range asked {
		n := 0
		if word, known := x.words.of[s]; known {
			n = having[word]
		}
		rare[i] = x.rarity(n)
		most += rare[i]
	}
	scores := make([]float32, len(x.entries))
	best := make([]float64, len(asked))
	for from := 0; from < len(hits); {
		place := hits[from].place
		long := 1.0
		if mean > 0 {
			long = 1 - b + b*float64(x.entries[place].length)/mean
		}
		clear(best)
		to := from
		for ; to < len(hits) && hits[to].place == place; to++ {
			h := hits[to]
			f := float64(h.count)
			worth := float64(h.near) * min(x.rarity(having[h.word]), rare[h.asked]) // a rarer word than was asked for is no better
			best[h.asked] = max(best[h.asked], worth*f*(k1+1)/(f+k1*long))
		}
		sum := 0.0
		for _, s := range best {
			sum += s
		}
		scores[place] = float32(min(sum/most, 1))
		from = to
	}
	return scores
}

// rarity is the inverse document frequency that is never negative, ln(1 + (N−n+½)/(n+½)).
func (x *Index) rarity(n int) float64 {
	return math.Log1p((float64(max(x.Len(), n)-n) + 0.5) / (float64(n) + 0.5))
}

// meanings returns the words of the vocabulary that the stems of a query may stand for.
func (x *Index) meanings(asked []string, wide bool) map[int32][]meaning {
	out := map[int32][]meaning{}
	for i, s := range asked {
		if word, ok := x.words.of[s]; ok {
			out[word] = append(out[word], meaning{int16(i), 1}) //nolint:gosec // at most maxAsked
		}
	}
	if !wide {
		return out
	}
	grams := make([][]uint64, len(asked))
	for i, s := range asked {
		grams[i] = gramsOf(nil, s)
	}
	var other []uint64
	for word, spelt := range x.words.words {
		other = gramsOf(other[:0], spelt)
		for i, s := range asked[:min(len(asked), maxAlike)] {
			if spelt == s || len(other) == 0 || len(grams[i]) == 0 {
				continue
			}
			if near := dice(grams[i], other); near >= leastDice {
				out[int32(word)] = append(out[int32(word)], meaning{int16(i), float32(near * near)}) //nolint:gosec // at most maxWords, maxAsked
			}
		}
	}
	return out
}

// maxAlike bounds the stems of a query for which words that are spelt alike are looked for: each is compared with the whole vocabulary.
const maxAlike = 32

// leastDice is the likeness of two words below which they are not taken for one another.
const leastDice = 0.5

// gramsOf appends the neighbouring pairs of a word's characters, its edges included, sorted.
func gramsOf(grams []uint64, word string) []uint64 {
	const edge = 1
	before := rune(edge)
	for _, r := range word {
		grams = append(grams, uint64(before)<<32|uint64(r)) //nolint:gosec // runes are not negative
		before = r
	}
	grams = append(grams, uint64(before)<<32|edge) //nolint:gosec // as above
	slices.Sort(grams)
	return grams
}

// dice is twice what two sorted lists have in common, divided by what they have together.
func dice(a, b []uint64) float64 {
	if 2*min(len(a), len(b)) < int(leastDice*float64(len(a)+len(b))) {
		return 0 // it could not reach the least
	}
	common := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			common++
			i++
			j++
		case a[i] < b[j]:
			i++
		default:
			j++
		}
	}
	return 2 * float64(common) / float64(len(a)+len(b))
}

// entityScores returns the boost of each entry, that of its best name: what the query means of it, less the more entries have it.
// nil: the query means none.
func (x *Index) entityScores(means func(string) float64) []float32 {
	if means == nil || len(x.names.words) == 0 {
		return nil
	}
	meant := make([]float64, len(x.names.words))
	named := false
	for i, name := range x.names.words {
		meant[i] = means(name)
		named = named || meant[i] > 0
	}
	if !named {
		return nil
	}
	links := make([]int, len(meant))
	x.eachName(func(_ int, name int32) { links[name]++ })
	scores := make([]float32, len(x.entries))
	x.eachName(func(place int, name int32) {
		others := float64(links[name] - 1)
		scores[place] = max(scores[place], float32(meant[name]/(1+entityDamping*others*others)))
	})
	return scores
}

func (x *Index) eachName(f func(place int, name int32)) {
	for i := range x.entries {
		part := x.entries[i].links
		for _, name := range x.links[part.first:part.last] {
			f(i, name)
		}
	}
}

// distinct returns the words without repeats.
func distinct(words []string) []string {
	seen := make(map[string]bool, len(words))
	out := words[:0]
	for _, w := range words {
		if !seen[w] {
			seen[w] = true
			out = append(out, w)
		}
	}
	return out
}
