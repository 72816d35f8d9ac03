package framework

import (
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// Keys under which wrappers of retrievers add what the plan says to the metadata of documents. Ranks are ints from 1, the
// others strings.
const (
	KeyRank    = "ragpilot.rank"     // place in the inner retriever's result
	KeyBlockID = "ragpilot.block_id" // under which the core knows the document: its own ID, or one made from its text
	KeyLabel   = "ragpilot.label"    // under which the model sees the document and may cite it
	KeyText    = "ragpilot.text"     // the original text
	KeyLeftOut = "ragpilot.left_out" // originals of documents that are not in the result
	KeyReason  = "ragpilot.reason"   // why one was left out
)

// Laid is a document as a plan lays it out.
type Laid struct {
	Index   int    // among the blocks of the request
	Text    string // as it is to be given to the model; empty for one that was left out
	BlockID string
	Label   string // empty: the model does not see it
	Reason  string // why it was left out; empty: it was not
	LeftOut []Laid // those that have no place of their own, with the document that they repeat, or the last
}

// Layout returns the documents of a plan in its order, nothing lost: each block of the request is in the result once, in
// its place or as left out. The order hint is in none of them: whether they are going to stand in one prompt, and where, a
// model's wrapper sees.
func Layout(plan *contextpilot.Plan) []Laid {
	docs := make([]Laid, len(plan.Items))
	at := make(map[int]int, len(docs)) // index of the block → index into docs
	for i, it := range plan.Items {
		docs[i] = named(plan, it.Index, it.Label)
		docs[i].Text = rendered(plan, i)
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
		original := named(plan, l.Index, label)
		original.Reason = l.Reason.String()
		docs[keeper].LeftOut = append(docs[keeper].LeftOut, original)
	}
	return docs
}

func named(plan *contextpilot.Plan, block int, label string) Laid {
	out := Laid{Index: block, Label: label, BlockID: plan.Block(block).ID}
	if out.BlockID == "" {
		out.BlockID = label // a label made from the text is the ID made from the text
	}
	return out
}

// rendered returns item i without the line feed behind it.
func rendered(plan *contextpilot.Plan, i int) string {
	return strings.TrimSuffix(plan.RenderItem(i), "\n")
}
