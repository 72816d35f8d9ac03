package retriever

import (
	"maps"

	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/framework"
)

// Keys that [Wrap] adds to the metadata of its documents.
const (
	// KeyRank holds the document's place in the inner retriever's result, an int from 1.
	KeyRank = framework.KeyRank
	// KeyBlockID holds the ID under which the core knows the document: its own, or one made from its text.
	KeyBlockID = framework.KeyBlockID
	// KeyLabel holds the name under which the model sees the document and may cite it; that of the document in
	// its place for a duplicate, and missing for a document over the budget.
	KeyLabel = framework.KeyLabel
	// KeyText holds the original PageContent.
	KeyText = framework.KeyText
	// KeyLeftOut holds, as []schema.Document, the originals of documents that are not in the result: a
	// duplicate is with the document it repeats, a chunk that was merged with the passage it is in, one over the
	// budget with the last. [Sources] unpacks them.
	KeyLeftOut = framework.KeyLeftOut
	// KeyReason says, in an original that was left out, why: "duplicate", "over budget", or "merged" if its text, or
	// what of it no other document has, is in the document that it is with.
	KeyReason = framework.KeyReason
)

const merged = "merged" // a value of KeyReason

// retrieved is what was found, as the core knows it.
type retrieved struct {
	docs []schema.Document
	ids  []string // of each document, "" if it has none
	// of says for each block of the request which documents it stands for, the one that names it first.
	of [][]int
}

// documents returns the plan's blocks as documents in plan order.
func documents(plan *contextpilot.Plan, found retrieved) []schema.Document {
	laid := framework.Layout(plan)
	docs := make([]schema.Document, len(laid))
	for i, l := range laid {
		docs[i] = found.named(found.of[l.Index][0], l.Label)
		docs[i].Metadata[KeyText], docs[i].PageContent = docs[i].PageContent, l.Text
		if left := found.left(l); len(left) > 0 {
			docs[i].Metadata[KeyLeftOut] = left
		}
	}
	return docs
}

// left returns the originals that have no place of their own in the prompt: those that share the block, then those whose
// blocks were left out.
func (r retrieved) left(l framework.Laid) (left []schema.Document) {
	all := r.of[l.Index]
	for _, other := range all[1:] {
		left = append(left, r.without(other, l.Label, mergedAs(r.docs[other], r.docs[all[0]])))
	}
	for _, out := range l.LeftOut {
		for _, original := range r.of[out.Index] {
			left = append(left, r.without(original, out.Label, out.Reason))
		}
	}
	return left
}

// mergedAs returns why a document is in the passage of another one.
func mergedAs(doc, lead schema.Document) string {
	if doc.PageContent == lead.PageContent {
		return contextpilot.Duplicate.String()
	}
	return merged
}

// without is an original that has no place of its own.
func (r retrieved) without(i int, label, reason string) schema.Document {
	doc := r.named(i, label)
	doc.Metadata[KeyReason] = reason
	return doc
}

// named copies a found document and adds rank, ID and label.
func (r retrieved) named(i int, label string) schema.Document {
	doc := r.docs[i]
	metadata := make(map[string]any, len(doc.Metadata)+4) // rank, ID, label, and text or reason
	maps.Copy(metadata, doc.Metadata)
	doc.Metadata = metadata
	metadata[KeyRank] = i + 1
	name := any(label) // a label made from the text is the ID made from the text
	if id := r.ids[i]; id != "" && id != label {
		metadata[KeyBlockID] = id
	} else if label != "" {
		metadata[KeyBlockID] = name
	}
	if label != "" {
		metadata[KeyLabel] = name
	}
	return doc
}
