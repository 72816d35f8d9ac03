package conversation

import (
	"encoding/hex"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/prompt/extract"
	"github.com/ragpilot/ragpilot/internal/prompt/notes"
	"github.com/ragpilot/ragpilot/internal/prompt/orders"
)

// MaxDocuments bounds the documents of a text that are looked at one by one: ordering takes time by their square.
const MaxDocuments = 4096

// system orders the documents in front of a conversation so that their beginning is in the engine's cache.
func (x *request) system(next *link, message, text int, at uint64, found *found, place orders.Key) string {
	// What stands in front of the documents decides which caches can be shared at all.
	scope := contextpilot.Scope{Model: x.c.Model, Tenant: x.c.Tenant, Replica: fmt.Sprintf("%016x", xxh3.HashString(found.Prefix))}
	if x.out.dryRun {
		scope.Replica += dryRunScope
	}
	if next.scope == nil {
		next.scope = &scope
	}
	// The client's layout stays, as it does where nothing moves: prompts in two layouts have no prefix in common. A label is what the
	// model cites a document by, and the client knows which document it was: it goes with it.
	var again func(int) string
	if x.echoes(found) {
		first := found.docs[0].Text
		again = func(int) string { return x.excerpt(first) }
	}
	order, l := x.orderFront(contextpilot.Request{Scope: scope, Blocks: blocksOf(found.Found), EchoText: again, NoEcho: again == nil}, place)
	if order == nil {
		return found.text
	}
	l.plan.Message, l.plan.Text, l.plan.At = message, text, at
	l.plan.Size, l.plan.Before, l.plan.After = len(found.text), len(found.Prefix), len(found.Suffix)
	x.out.Plans = append(x.out.Plans, l.plan)
	l.named = x.c.EvictedByID && l.plan.ID == x.out.Plans[0].ID
	next.leads = append(next.leads, l)
	changes := x.out.Changes
	out := x.reorder(found, order, false, Change{Message: message, Role: System})
	if out == found.text {
		return out
	}
	if x.c.Recorded {
		return notes.Fence(out)
	}
	first, _ := found.Span(0)
	_, last := found.Span(len(found.docs) - 1) // as they stand in the text, which has the same length
	if echo := x.echo(found, order); echo != "" {
		out = out[:last] + echo + out[last:]
		last += len(echo)
		x.out.Changes[len(x.out.Changes)-1].Echo = true
	}
	// Documents that were apart may make a note together. They stay as they came: a fence would make them targets in one order and
	// none in another.
	if notes.FenceWhere(out, func(at int) bool { return at > first && at <= last }) != out {
		x.out.Changes = changes
		return found.text
	}
	return out
}

// lead is what the pilot was given of documents at the front of a prompt. Whoever sends them again, in a retry, a later turn or
// another conversation that begins alike, brings them back into the engine's cache if they are not there; the pilot is given them
// again then.
type lead struct {
	plan   Plan
	blocks []contextpilot.Block   // in the order in which they are sent
	full   int                    // tokens of its path in the pilot's index, if nothing was evicted
	named  bool                   // its ID is its request's own
	now    atomic.Pointer[string] // the ID under which the pilot was given it last
}

// orderFront orders documents that stand at the front of the prompt, and gives the pilot what is sent: what the index holds must be
// what the engine gets, also where the order was chosen earlier, or by another replica. Nil if the context has ended.
func (x *request) orderFront(req contextpilot.Request, place orders.Key) ([]int, *lead) {
	x.e.opt.Expire()
	scope, blocks, id := req.Scope, req.Blocks, x.promptID()
	req.ID = id
	var plan contextpilot.Plan
	var chosen []int // nil: the order was known
	order := x.ordered(place, len(blocks), func() []int {
		var err error
		if plan, err = x.e.opt.Plan(x.ctx, req); err == nil {
			chosen = orderOf(&plan)
		}
		return chosen
	})
	if order == nil {
		return nil, nil
	}
	fixed := contextpilot.Request{ID: id, Scope: scope, Blocks: arranged(blocks, order), Fixed: true}
	if !slices.Equal(order, chosen) {
		plan = x.e.pilot.Plan(fixed)
	}
	x.e.remember(id, scope, len(blocks))
	switch {
	case x.e.opt.Journal == nil || isDryRun(scope):
	case chosen == nil:
		x.e.opt.Journal.Planned(fixed, nil)
	default:
		x.e.opt.Journal.Planned(req, order)
	}
	l := &lead{plan: Plan{Scope: scope, ID: id, Expected: plan.Prefix.Tokens}, blocks: fixed.Blocks}
	for _, b := range blocks {
		l.plan.Tokens += b.Tokens
	}
	l.now.Store(&l.plan.ID)
	l.full, _ = x.e.pilot.Resident(scope, id)
	return order, l
}

// again gives the pilot documents that an earlier request was planned with: they are sent once more. What is in the index is
// the latest there from now on. What is not, because it never reached the engine or was evicted since, is planned as it was.
func (x *request) again(l *lead, message int) {
	x.e.opt.Expire()
	id, scope := *l.now.Load(), l.plan.Scope
	if tokens, live := x.e.pilot.Resend(scope, id); live && tokens >= l.full {
		x.e.remember(id, scope, len(l.blocks))
		return
	}
	if l.named && len(x.out.Plans) == 0 { // the engine reports its eviction by the request that brings it back
		id = x.promptID()
		l.now.Store(&id)
	}
	req := contextpilot.Request{ID: id, Scope: scope, Blocks: l.blocks, Fixed: true}
	plan := x.e.pilot.Plan(req)
	x.e.remember(id, scope, len(l.blocks))
	if x.e.opt.Journal != nil && !isDryRun(scope) {
		x.e.opt.Journal.Planned(req, nil)
	}
	p := l.plan
	p.ID, p.Expected, p.Message = id, plan.Prefix.Tokens, message
	x.out.Plans = append(x.out.Plans, p)
}

// ordered returns the order that was chosen for a place, or chooses one. Nil, which is not remembered, if the context has
// ended. What a dry run chooses is not sent, and no other request's order.
func (x *request) ordered(place orders.Key, n int, choose func() []int) []int {
	done := func(known bool) {
		if x.c.Ordered != nil {
			x.c.Ordered(n, known)
		}
	}
	if x.out.dryRun {
		defer done(false)
		return choose()
	}
	if order, ok := x.e.opt.Orders.Get(x.ctx, x.c.Tenant, place); ok && len(order) == n {
		done(true)
		return order
	}
	order := choose()
	if order == nil {
		return nil
	}
	defer done(false)
	if winner := x.e.opt.Orders.Put(x.ctx, x.c.Tenant, place, order); winner != nil {
		return winner
	}
	return order
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

// reorder puts found documents into another order, if it is one: in the recorded layout, or each with all that stands with it.
func (x *request) reorder(found *found, order []int, rebuilt bool, c Change) string {
	if len(order) != len(found.Docs) || slices.IsSorted(order) {
		return found.text
	}
	c.Kind, c.Documents, c.Order = Ordered, len(order), order
	x.out.Changes = append(x.out.Changes, c)
	if rebuilt {
		return found.Rebuild(order)
	}
	return found.Permute(order)
}
