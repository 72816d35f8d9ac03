package retriever

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tmc/langchaingo/schema"
)

// Sources returns the documents as the inner retriever gave them, in its order: with their original text, the
// duplicates and those over the budget included, and with [KeyRank], [KeyBlockID] and [KeyLabel] in their
// metadata. docs are what a wrapped retriever returned, or a chain as source documents; they may have been
// filtered or reordered since. Documents from elsewhere are passed on at the end. docs is not changed.
func Sources(docs []schema.Document) []schema.Document {
	out := make([]schema.Document, 0, len(docs))
	for _, d := range docs {
		left, _ := d.Metadata[KeyLeftOut].([]schema.Document)
		if text, ok := d.Metadata[KeyText].(string); ok {
			d.PageContent = text
			d.Metadata = maps.Clone(d.Metadata)
			delete(d.Metadata, KeyText)
			delete(d.Metadata, KeyLeftOut)
		}
		out = append(out, d)
		for _, l := range left {
			l.Metadata = maps.Clone(l.Metadata)
			out = append(out, l)
		}
	}
	slices.SortStableFunc(out, func(a, b schema.Document) int {
		x, known := a.Metadata[KeyRank].(int)
		y, other := b.Metadata[KeyRank].(int)
		switch {
		case known && other:
			return cmp.Compare(x, y)
		case known:
			return -1
		case other:
			return 1
		}
		return 0
	})
	return out
}

// Cited returns the documents that a label in an answer stands for, as the inner retriever gave them: first the one that the
// model was shown under this label, then those with the same text that were left out as duplicates of it. nil: the label
// is none of theirs. docs are what a wrapped retriever returned, or a chain as source documents. Package citation finds
// the labels in an answer, and knows those of earlier turns.
func Cited(docs []schema.Document, label string) (cited []schema.Document) {
	for _, d := range Sources(docs) {
		if d.Metadata[KeyLabel] != label || label == "" {
			continue
		}
		if _, left := d.Metadata[KeyReason]; !left {
			cited = append([]schema.Document{d}, cited...)
			continue
		}
		cited = append(cited, d)
	}
	return cited
}
