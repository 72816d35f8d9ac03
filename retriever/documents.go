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
	// duplicate is with the document it repeats, one over the budget with the last. [Sources] unpacks them.
	KeyLeftOut = "ragpilot.left_out"
	// KeyReason says, in an original that was left out, why: "duplicate" or "over budget".
	KeyReason = "ragpilot.reason"
)

// documents returns the plan's blocks as documents in plan order.
func documents(plan *contextpilot.Plan, found []schema.Document, noHint bool) []schema.Document {
	docs := make([]schema.Document, len(plan.Items))
	at := make(map[int]int, len(docs)) // index into found → index into docs
	for i, it := range plan.Items {
		docs[i] = named(plan, found, it.Index, it.Label)
		docs[i].Metadata[KeyText] = found[it.Index].PageContent
		docs[i].PageContent = strings.TrimSuffix(plan.RenderItem(i), "\n")
		at[it.Index] = i
	}
	if len(docs) == 0 {
		return docs
	}
	for _, l := range plan.LeftOut {
		keeper, label := len(docs)-1, ""
		if l.Reason == contextpilot.Duplicate {
			if i, ok := at[l.Same]; ok { // not if that one was over the budget
				keeper, label = i, plan.Items[i].Label
			}
		}
		original := named(plan, found, l.Index, label)
		original.Metadata[KeyReason] = l.Reason.String()
		left, _ := docs[keeper].Metadata[KeyLeftOut].([]schema.Document)
		docs[keeper].Metadata[KeyLeftOut] = append(left, original)
	}
	if hint := plan.Hint(); hint != "" && !noHint {
		docs[len(docs)-1].PageContent += "\n" + hint
	}
	return docs
}

// named copies a found document and adds rank, ID and label.
func named(plan *contextpilot.Plan, found []schema.Document, i int, label string) schema.Document {
	doc := found[i]
	doc.Metadata = maps.Clone(doc.Metadata)
	if doc.Metadata == nil {
		doc.Metadata = map[string]any{}
	}
	doc.Metadata[KeyRank] = i + 1
	if id := plan.Block(i).ID; id != "" {
		doc.Metadata[KeyBlockID] = id
	} else if label != "" {
		doc.Metadata[KeyBlockID] = label // a label made from the text is the ID made from the text
	}
	if label != "" {
		doc.Metadata[KeyLabel] = label
	}
	return doc
}
