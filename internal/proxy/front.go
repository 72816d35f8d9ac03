package proxy

import (
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/extract"
	"github.com/ragpilot/ragpilot/internal/orders"
)

// front orders documents that stand at the front of the prompt, and tells the pilot how they are sent: what the index is told
// must be what the engine gets, also where the order was chosen earlier, or by another replica. Nil if the client has gone
// meanwhile.
func (x *exchange) front(scope contextpilot.Scope, place orders.Key, blocks []contextpilot.Block) (order []int, sent []contextpilot.Block) {
	x.p.Expire()
	id := x.promptID()
	req := contextpilot.Request{ID: id, Scope: scope, Blocks: blocks}
	var plan contextpilot.Plan
	var chosen []int // nil: the order was known
	order = x.ordered(place, len(blocks), func() []int {
		var ok bool
		if plan, ok = x.p.plan(x.r.Context(), req); ok {
			chosen = orderOf(&plan)
		}
		return chosen
	})
	if order == nil {
		return nil, nil
	}
	fixed := contextpilot.Request{ID: id, Scope: scope, Blocks: arranged(blocks, order), Fixed: true}
	if !slices.Equal(order, chosen) {
		plan = x.p.opt.Pilot.Plan(fixed)
	}
	x.p.remember(id, scope, len(blocks))
	switch {
	case x.p.opt.Journal == nil || isShadow(scope):
	case chosen == nil:
		x.p.opt.Journal.Planned(fixed, nil)
	default:
		x.p.opt.Journal.Planned(req, order)
	}
	pl := planned{scope: scope, id: id, expected: plan.Prefix.Tokens}
	for _, b := range blocks {
		pl.tokens += b.Tokens
	}
	x.planned = append(x.planned, pl)
	return order, fixed.Blocks
}

func orderOf(plan *contextpilot.Plan) []int {
	order := make([]int, len(plan.Items))
	for i, item := range plan.Items {
		order[i] = item.Index
	}
	return order
}

// arranged returns the blocks in an order.
func arranged(blocks []contextpilot.Block, order []int) []contextpilot.Block {
	out := make([]contextpilot.Block, len(order))
	for i, from := range order {
		out[i] = blocks[from]
	}
	return out
}

// blocksOf are documents as the pilot knows them: by the hash and the length of all that moves with each, its tags or its label,
// too. A document that stands there once more is another block, as the pilot leaves repeats out.
func blocksOf(found extract.Found) []contextpilot.Block {
	blocks := make([]contextpilot.Block, len(found.Docs))
	copies := make(map[content]int, len(found.Docs))
	for i := range found.Docs {
		text := found.Item(i)
		c := xxh3.HashString128(text)
		h := c.Bytes()
		id := hex.EncodeToString(h[:])
		if copies[c]++; copies[c] > 1 {
			id = fmt.Sprintf("%s#%d", id, copies[c])
		}
		blocks[i] = contextpilot.Block{ID: id, Tokens: max(contextpilot.Estimate{}.Count(text), 1)}
	}
	return blocks
}
