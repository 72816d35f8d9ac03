package retriever

import (
	"maps"
	"strings"

	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// Keys that [Wrap] adds to the metadata of its documents.
const (
	// KeyRank holds the document's place in the inner retriever's result, an int from 1.
	KeyRank = "ragpilot.rank"
	// KeyBlockID holds the ID under which the core knows the document: its own, or one made from its text.
	KeyBlockID = "ragpilot.block_id"
	// KeyLabel holds the name under which the model sees the document and may cite it; that of the document in
	// its place for a duplicate, and missing for a document over the budget.
	KeyLabel = "ragpilot.label"
	// KeyText holds the original PageContent.
	KeyText = "ragpilot.text"
	// KeyLeftOut holds, as []schema.Document, the originals of documents that are not in the result: a
	// duplicate is with the document it repeats, a chunk that was merged with the passage it is in, one over the
	// budget with the last. [Sources] unpacks them.
	KeyLeftOut = "ragpilot.left_out"
	// KeyReason says, in an original that was left out, why: "duplicate", "over budget", or "merged" if its text, or
	// what of it no other document has, is in the document that it is with.
	KeyReason = "ragpilot.reason"
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
func documents(plan *contextpilot.Plan, found retrieved, noHint bool) []schema.Document {
	docs := make([]schema.Document, len(plan.Items))
	at := make(map[int]int, len(docs)) // block → index into docs
	for i, it := range plan.Items {
		lead := found.of[it.Index][0]
		docs[i] = found.named(lead, it.Label)
		docs[i].Metadata[KeyText] = found.docs[lead].PageContent
		docs[i].PageContent = strings.TrimSuffix(plan.RenderItem(i), "\n")
		at[it.Index] = i
	}
	if len(docs) == 0 {
		return docs
	}
	leave := func(keeper, original int, label, reason string) {
		doc := found.named(original, label)
		doc.Metadata[KeyReason] = reason
		left, _ := docs[keeper].Metadata[KeyLeftOut].([]schema.Document)
		docs[keeper].Metadata[KeyLeftOut] = append(left, doc)
	}
	for i, it := range plan.Items {
		all := found.of[it.Index]
		for _, other := range all[1:] {
			leave(i, other, it.Label, mergedAs(found.docs[other], found.docs[all[0]]))
		}
	}
	for _, l := range plan.LeftOut {
		keeper, label := len(docs)-1, ""
		if l.Reason == contextpilot.Duplicate {
			if i, ok := at[l.Same]; ok { // not if that one was over the budget
				keeper, label = i, plan.Items[i].Label
			}
		}
		for _, original := range found.of[l.Index] {
			leave(keeper, original, label, l.Reason.String())
		}
	}
	if hint := plan.Hint(); hint != "" && !noHint {
		docs[len(docs)-1].PageContent += "\n" + hint
	}
	return docs
}

// mergedAs tells why a document is in the passage of another one.
func mergedAs(doc, lead schema.Document) string {
	if doc.PageContent == lead.PageContent {
		return contextpilot.Duplicate.String()
	}
	return merged
}

// named copies a found document and adds rank, ID and label.
func (r retrieved) named(i int, label string) schema.Document {
	doc := r.docs[i]
	metadata := make(map[string]any, len(doc.Metadata)+4) // rank, ID, label, and text or reason
	maps.Copy(metadata, doc.Metadata)
	doc.Metadata = metadata
	doc.Metadata[KeyRank] = i + 1
	if id := r.ids[i]; id != "" {
		doc.Metadata[KeyBlockID] = id
	} else if label != "" {
		doc.Metadata[KeyBlockID] = label // a label made from the text is the ID made from the text
	}
	if label != "" {
		doc.Metadata[KeyLabel] = label
	}
	return doc
}
