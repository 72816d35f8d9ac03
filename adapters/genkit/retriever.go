package genkit

import (
	"context"
	"fmt"
	"maps"
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
	s := newSettings(opts)
	offers := framework.OffersOf(pilot)
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
		// The session is left to the middleware, which sees the messages that are sent.
		plan := pilot.Plan(contextpilot.Request{Scope: s.scope, Query: query, Blocks: blocks, Budget: s.budget})
		plan.Session = framework.ConversationFrom(ctx)
		if len(plan.Items) > 0 && !s.noHold { // without blocks there is nothing to find it by
			offers.Offer(plan)
		}
		laid := framework.Layout(&plan)
		out := &ai.RetrieverResponse{Documents: make([]*ai.Document, len(laid))}
		for i, l := range laid {
			out.Documents[i] = document(found.Documents, l)
		}
		return out, nil
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
	return framework.Unambiguous(blocks), true
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

// document copies a found document and says what the plan does with it.
func document(found []*ai.Document, l framework.Laid) *ai.Document {
	d := *found[l.Index]
	d.Metadata = maps.Clone(d.Metadata)
	if d.Metadata == nil {
		d.Metadata = map[string]any{}
	}
	d.Metadata[KeyRank] = l.Index + 1
	if l.BlockID != "" {
		d.Metadata[KeyBlockID] = l.BlockID
	}
	if l.Label != "" {
		d.Metadata[KeyLabel] = l.Label
	}
	if l.Reason != "" {
		d.Metadata[KeyReason] = l.Reason
		return &d
	}
	d.Metadata[KeyText], _ = textOf(&d)
	d.Content = []*ai.Part{ai.NewTextPart(l.Text)}
	var left []*ai.Document
	for _, x := range l.LeftOut {
		left = append(left, document(found, x))
	}
	if len(left) > 0 {
		d.Metadata[KeyLeftOut] = left
	}
	return &d
}
