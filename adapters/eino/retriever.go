package eino

import (
	"context"
	"fmt"
	"maps"

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
	settings
	pilot  *contextpilot.Pilot
	offers *framework.Offers
	inner  retriever.Retriever
}

var _ retriever.Retriever = (*planned)(nil)

// Retriever returns a retriever that asks inner and gives its documents as the pilot lays them out. A document's ID is its
// block's; documents without one are known by their text. It is safe for concurrent use if inner is. The documents of
// inner are not changed, only copied.
func Retriever(pilot *contextpilot.Pilot, inner retriever.Retriever, opts ...Option) retriever.Retriever {
	return &planned{settings: newSettings(opts), pilot: pilot, offers: framework.OffersOf(pilot), inner: inner}
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
	// The session is left to the model's wrapper, which sees the messages that are sent.
	plan := p.pilot.Plan(contextpilot.Request{Scope: p.scope, Query: query, Blocks: framework.Unambiguous(blocks), Budget: p.budget})
	plan.Session = framework.ConversationFrom(ctx)
	if len(plan.Items) > 0 && !p.noHold { // without blocks there is nothing to find it by
		p.offers.Offer(plan)
	}
	laid := framework.Layout(&plan)
	docs := make([]*schema.Document, len(laid))
	for i, l := range laid {
		docs[i] = document(found, l)
	}
	return docs, nil
}

// document copies a found document and says what the plan does with it.
func document(found []*schema.Document, l framework.Laid) *schema.Document {
	d := *found[l.Index]
	d.MetaData = maps.Clone(d.MetaData)
	if d.MetaData == nil {
		d.MetaData = map[string]any{}
	}
	d.MetaData[KeyRank] = l.Index + 1
	if l.BlockID != "" {
		d.MetaData[KeyBlockID] = l.BlockID
	}
	if l.Label != "" {
		d.MetaData[KeyLabel] = l.Label
	}
	if l.Reason != "" {
		d.MetaData[KeyReason] = l.Reason
		return &d
	}
	d.MetaData[KeyText], d.Content = d.Content, l.Text
	left := make([]*schema.Document, len(l.LeftOut))
	for i, x := range l.LeftOut {
		left[i] = document(found, x)
	}
	if len(left) > 0 {
		d.MetaData[KeyLeftOut] = left
	}
	return &d
}
