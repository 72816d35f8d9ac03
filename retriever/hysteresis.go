package retriever

import (
	"cmp"
	"slices"

	"github.com/tmc/langchaingo/schema"
)

// pick sorts the list and returns the documents of its first K entries. before holds the marks given last time.
func (s *Steady) pick(list []entry, before []mark) []schema.Document {
	s.choose(list, before)
	n := min(s.opts.K, len(list))
	s.order(list[:n])
	docs := make([]schema.Document, n)
	for i, e := range list[:n] {
		docs[i] = e.doc
	}
	return docs
}

// choose brings the entries to be given to the front: those with the best scores, where the ones that were given before
// score the margin more. So a new one takes a place as soon as it is better by more than that.
func (s *Steady) choose(list []entry, before []mark) {
	place := make(map[mark]int, len(before))
	for i, m := range before {
		place[m] = i
	}
	for i := range list {
		e := &list[i]
		if p, ok := place[e.mark]; ok {
			e.before = p
			delete(place, e.mark) // a copy is not given for it
		}
		e.bucket = int((1 - e.score) / s.opts.Bucket)
	}
	weight := func(e entry) float64 {
		if e.before != notGiven {
			return e.score + s.opts.Margin
		}
		return 1 - float64(e.bucket)*s.opts.Bucket // the upper end: documents of one bucket are equal
	}
	slices.SortStableFunc(list, func(a, b entry) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a.before, b.before), byIdentity(a, b))
	})
}

// order puts the chosen entries into the order they are given in: that of last time as far as no score contradicts it by
// more than the margin, otherwise by bucket.
func (s *Steady) order(list []entry) {
	same := slices.Clone(list)
	slices.SortStableFunc(same, func(a, b entry) int { return cmp.Compare(a.before, b.before) })
	worst := 2.0 // the lowest score so far
	kept := true
	for _, e := range same {
		kept = kept && e.before != notGiven && e.score <= worst+s.opts.Margin
		worst = min(worst, e.score)
	}
	if kept {
		copy(list, same)
		return
	}
	slices.SortStableFunc(list, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.bucket, b.bucket), cmp.Compare(a.before, b.before), byIdentity(a, b))
	})
}

// byIdentity orders by ID, and by text where there is none.
func byIdentity(a, b entry) int {
	return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.doc.PageContent, b.doc.PageContent))
}
