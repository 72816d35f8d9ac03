package retriever

import "github.com/tmc/langchaingo/schema"

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
