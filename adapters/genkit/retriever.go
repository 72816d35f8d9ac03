package genkit

import (
	"context"
	"fmt"
	"strings"

	"github.com/firebase/genkit/go/ai"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/framework"
)

// Keys of a planned document's metadata.
const (
	KeyID      = "id"                 // string, read: the document's own ID; without it the text is what it is known by
	KeyRank    = framework.KeyRank    // int, from 1: its place in the inner retriever's result
	KeyBlockID = framework.KeyBlockID // string: the ID under which the pilot knows it
	KeyLabel   = framework.KeyLabel   // string: under which the model sees it
	KeyText    = framework.KeyText    // string: its original text
	KeyLeftOut = framework.KeyLeftOut // []*ai.Document: originals that have no place of their own
	KeyReason  = framework.KeyReason  // string, in such an original: "duplicate" or "over budget"
)

// Retriever returns a retriever, named ragpilot/ and inner's name, that asks inner and gives its documents as the pilot
// lays them out. Results with documents that are not all text are passed on as they are. It is safe for concurrent use if
// inner is. The documents of inner are not changed, only copied.
func Retriever(pilot *contextpilot.Pilot, inner ai.Retriever, opts ...Option) ai.Retriever {
	planner := framework.NewPlanner(pilot, framework.NewWrapOptions(opts))
	return ai.NewRetriever("ragpilot/"+inner.Name(), nil, func(ctx context.Context, req *ai.RetrieverRequest) (*ai.RetrieverResponse, error) {
		found, err := inner.Retrieve(ctx, req)
		if err != nil {
			return nil, fmt.Errorf("genkit: %w", err)
		}
		if found == nil || len(found.Documents) == 0 {
			return found, nil
		}
		blocks, ok := blocksOf(found.Documents)
		if !ok {
			return found, nil
		}
		query, _ := textOf(req.Query)
		laid := planner.Plan(ctx, query, blocks)
		docs := framework.Documents(laid, func(l framework.Laid, leftOut []*ai.Document) *ai.Document {
			d := *found.Documents[l.Index]
			d.Metadata = l.Metadata(d.Metadata)
			if l.Reason != "" {
				return &d
			}
			d.Metadata[KeyText] = blocks[l.Index].Text
			d.Content = []*ai.Part{ai.NewTextPart(l.Text)}
			if len(leftOut) > 0 {
				d.Metadata[KeyLeftOut] = leftOut
			}
			return &d
		})
		return &ai.RetrieverResponse{Documents: docs}, nil
	})
}

// blocksOf returns the documents as blocks; not ok if one is not all text.
func blocksOf(docs []*ai.Document) (blocks []contextpilot.Block, ok bool) {
	blocks = make([]contextpilot.Block, len(docs))
	for i, d := range docs {
		if blocks[i].Text, ok = textOf(d); !ok {
			return nil, false
		}
		blocks[i].ID, _ = d.Metadata[KeyID].(string)
	}
	return blocks, true
}

// textOf returns a document's text; not ok if there is something else in it.
func textOf(d *ai.Document) (text string, ok bool) {
	if d == nil {
		return "", false
	}
	var b strings.Builder
	for _, part := range d.Content {
		if !part.IsText() {
			return "", false
		}
		b.WriteString(part.Text)
	}
	return b.String(), true
}
