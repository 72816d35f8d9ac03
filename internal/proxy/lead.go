package proxy

import (
	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/extract"
)

// lead is what the pilot was told of documents at the front of a prompt. A later turn brings them back into the engine's
// cache if they were evicted meanwhile; it is told again then.
type lead struct {
	planned                      // offsets from the item's first byte
	blocks  []contextpilot.Block // in the order in which they are sent
	full    int                  // tokens of its path in the pilot's index, if nothing was evicted
}

// lead returns what is to be kept of the documents that were planned last; first is what was kept of others in the same item,
// which wins. Nil if nobody follows the engine's cache.
func (x *exchange) lead(first *lead, item int, order []int, found extract.Found) *lead {
	if first != nil || x.p.opt.Caches == nil || len(order) != len(found.Docs) || !x.p.opt.Caches.Follows(x.model) {
		return first
	}
	l := &lead{planned: x.planned[len(x.planned)-1], blocks: make([]contextpilot.Block, len(order))}
	l.start -= item
	l.full, _ = x.p.opt.Pilot.Resident(l.scope, l.id)
	for i, at := range order {
		l.blocks[i] = blockOf(found.Docs[at])
	}
	return l
}

// again tells the pilot of documents that an earlier turn was planned with, if the engine has lost some of them since: they are
// sent once more. item is where their item begins.
func (x *exchange) again(l *lead, item int) {
	if x.p.opt.Caches == nil || !x.p.opt.Caches.Follows(x.model) {
		return
	}
	if tokens, live := x.p.opt.Pilot.Resident(l.scope, l.id); live && tokens >= l.full {
		return
	}
	req := contextpilot.Request{ID: l.id, Scope: l.scope, Blocks: l.blocks, Fixed: true}
	plan := x.p.opt.Pilot.Plan(req)
	x.p.remember(l.id, l.scope)
	if x.p.opt.Journal != nil {
		x.p.opt.Journal.Planned(req)
	}
	pl := l.planned
	pl.start += item
	pl.expected = plan.Prefix.Tokens
	x.planned = append(x.planned, pl)
}
