package proxy

import (
	"sync/atomic"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// lead is what the pilot was told of documents at the front of a prompt. Whoever sends them again, in a retry, a later turn or
// another conversation that begins alike, brings them back into the engine's cache if they are not there; the pilot is told
// again then.
type lead struct {
	planned                        // offsets from the item's first byte
	blocks  []contextpilot.Block   // in the order in which they are sent
	full    int                    // tokens of its path in the pilot's index, if nothing was evicted
	named   bool                   // its ID is its request's own
	now     atomic.Pointer[string] // the ID under which the pilot was told last
}

// lead returns what is to be kept of the documents that were planned last, and are sent as these blocks.
func (x *exchange) lead(item int, sent []contextpilot.Block) *lead {
	l := &lead{planned: x.planned[len(x.planned)-1], blocks: sent}
	l.start -= item
	l.named = l.id == x.engineID()
	l.now.Store(&l.id)
	l.full, _ = x.p.opt.Pilot.Resident(l.scope, l.id)
	return l
}

// again tells the pilot of documents that an earlier turn was planned with: they are sent once more. What is in the index is
// the latest there from now on. What is not, because it never reached the engine or was evicted since, is planned as it was. item
// is where their item begins.
func (x *exchange) again(l *lead, item int) {
	x.p.Expire()
	id := *l.now.Load()
	if tokens, live := x.p.opt.Pilot.Resend(l.scope, id); live && tokens >= l.full {
		x.p.remember(id, l.scope, len(l.blocks))
		return
	}
	if l.named && len(x.planned) == 0 { // the engine reports its eviction by the request that brings it back
		id = x.promptID()
		l.now.Store(&id)
	}
	req := contextpilot.Request{ID: id, Scope: l.scope, Blocks: l.blocks, Fixed: true}
	plan := x.p.opt.Pilot.Plan(req)
	x.p.remember(id, l.scope, len(l.blocks))
	if x.p.opt.Journal != nil && !isShadow(l.scope) {
		x.p.opt.Journal.Planned(req, nil)
	}
	pl := l.planned
	pl.id, pl.expected = id, plan.Prefix.Tokens
	pl.start += item
	x.planned = append(x.planned, pl)
}
