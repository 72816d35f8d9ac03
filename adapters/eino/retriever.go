package eino

import (
	"context"
	"fmt"

	"github.com/cloudwego/eino/components/retriever"
	"github.com/cloudwego/eino/schema"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/framework"
)

// Keys of a planned document's MetaData.
const (
	KeyRank    = framework.KeyRank    // int, from 1: its place in the inner retriever's result
	KeyBlockID = framework.KeyBlockID // string: the ID under which the pilot knows it
	KeyLabel   = framework.KeyLabel   // string: under which the model sees it
	KeyText    = framework.KeyText    // string: its original Content
	KeyLeftOut = framework.KeyLeftOut // []*schema.Document: originals that have no place of their own
	KeyReason  = framework.KeyReason  // string, in such an original: "duplicate" or "over budget"
)

type planned struct {
	planner *framework.Planner
	inner   retriever.Retriever
}

var _ retriever.Retriever = (*planned)(nil)

// Retriever returns a retriever that asks inner and gives its documents as the pilot lays them out. A document's ID is its
// block's; documents without one are known by their text. It is safe for concurrent use if inner is. The documents of
// inner are not changed, only copied.
func Retriever(pilot *contextpilot.Pilot, inner retriever.Retriever, opts ...Option) retriever.Retriever {
	return &planned{framework.NewPlanner(pilot, framework.NewWrapOptions(opts)), inner}
}

// Retrieve plans what inner finds. An error of inner is returned wrapped; nothing else fails.
func (p *planned) Retrieve(ctx context.Context, query string, opts ...retriever.Option) ([]*schema.Document, error) {
	found, err := p.inner.Retrieve(ctx, query, opts...)
	if err != nil {
		return nil, fmt.Errorf("eino: %w", err)
	}
	if len(found) == 0 {
		return found, nil
	}
	blocks := make([]contextpilot.Block, len(found))
	for i, d := range found {
		blocks[i] = contextpilot.Block{ID: d.ID, Text: d.Content}
	}
	laid := p.planner.Plan(ctx, query, blocks)
	return framework.Documents(laid, func(l framework.Laid, leftOut []*schema.Document) *schema.Document {
		d := *found[l.Index]
		d.MetaData = l.Metadata(d.MetaData)
		if l.Reason != "" {
			return &d
		}
		d.MetaData[KeyText], d.Content = d.Content, l.Text
		if len(leftOut) > 0 {
			d.MetaData[KeyLeftOut] = leftOut
		}
		return &d
	}), nil
}
