package residency

import (
	"strings"

	"github.com/ragpilot/ragpilot/engines/kvevents"
)

// breath is how many blocks are entered before the lock is let go: planners wait for no more than that.
const breath = 128

// Apply takes a batch. What it means for requests is worked out for some events at a time, and never between the
// blocks of one event: engines remove the blocks of a prompt in any order.
func (x *Index) Apply(b *kvevents.Batch) {
	for rest := b.Events; len(rest) > 0; {
		n := x.some(rest)
		rest = rest[n:]
		x.deliver()
	}
}

func (x *Index) some(events []kvevents.Event) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	blocks := 0
	for i := range events {
		x.event(&events[i])
		if blocks += 1 + len(events[i].Hashes); blocks >= breath || events[i].Kind == kvevents.Cleared {
			x.settle()
			return i + 1
		}
	}
	x.settle()
	return len(events)
}

func (x *Index) event(ev *kvevents.Event) {
	x.stats.Events++
	x.spoken = true
	if ev.Kind == kvevents.Cleared {
		x.settle()
		switch {
		case x.rebuilds: // of old
			x.rebuild()
		case len(x.entries) > 0, x.reached && !x.whole():
			x.clear(kvevents.EngineCleared)
		default: // from before we came, or reported already: nothing can be lost, so no update is needed
			x.clear(kvevents.EngineCleared)
			x.pending = x.pending[:len(x.pending)-1]
		}
		return
	}
	if !x.tracked(ev) {
		x.stats.Foreign += uint64(len(ev.Hashes))
		return
	}
	if ev.Kind == kvevents.Removed {
		for _, h := range ev.Hashes {
			x.remove(h, x.tier(ev))
		}
		return
	}
	x.store(ev)
}

// tracked leaves other groups of hybrid models alone: a prefix can be read only if all groups hold it, and what
// windows and states hold says nothing about prefixes.
func (x *Index) tracked(ev *kvevents.Event) bool {
	if ev.Group != 0 {
		return false
	}
	if ev.Kind == kvevents.Stored && !fullAttention(ev.Spec) {
		x.foreign = true
		return false
	}
	return true
}

// fullAttention reports whether every block of a prompt is kept in caches of this kind. Latent attention (MLA) keeps
// all of them too, in another form.
func fullAttention(spec string) bool {
	return spec == "" || spec == "full_attention" || strings.HasPrefix(spec, "mla")
}

func (x *Index) store(ev *kvevents.Event) {
	tier := x.tier(ev)
	if !ev.Sliced() || tier != gpu && !x.cuts(ev) {
		x.stats.HashesOnly += uint64(len(ev.Hashes))
		for _, h := range ev.Hashes {
			x.add(h, 0, tier)
		}
		return
	}
	if tier == gpu {
		x.learn(geometry{ev.BlockSize, ev.Bigram})
		x.heard = true // after those that were answered before
	}
	at := root
	if !ev.Parent.IsZero() {
		at = x.entries[ev.Parent].node // 0: an orphan
	}
	before := ev.Parent
	for i, h := range ev.Hashes {
		x.chain.stored(ev, i, ev.Parent.IsZero() && i == 0)
		if at == 0 {
			x.orphan(h, before, tier)
			before, at = h, x.entries[h].node
			continue
		}
		if at = x.grow(at, x.chain.content()); at == 0 {
			return
		}
		x.add(h, at, tier)
	}
}

// cuts reports whether an event's blocks are like those of the GPU. A lower tier may cut prompts otherwise: LMCache does, into
// chunks of many blocks.
func (x *Index) cuts(ev *kvevents.Event) bool {
	return *x.geo.Load() == geometry{ev.BlockSize, ev.Bigram}
}

// grow returns the node behind at, or 0 if there are too many.
func (x *Index) grow(at ref, content []byte) ref {
	c := x.chain.after(x.tree.at(at).chain, content)
	if x.tree.live >= x.cfg.MaxBlocks {
		if r, ok := x.tree.known[c]; ok {
			return r
		}
		x.stats.Overflow++
		x.broken = true
		return 0
	}
	return x.tree.child(at, c)
}

// add counts one more copy of a block; n is its node, 0 if not known.
func (x *Index) add(h kvevents.Hash, n ref, tier tier) {
	e, ok := x.entries[h]
	if !ok && len(x.entries) >= x.cfg.MaxBlocks {
		x.stats.Overflow++
		x.broken = x.broken || tier == gpu
		return
	}
	if tier == gpu {
		e.gpu++
	} else {
		e.low++
		x.tiers.add(h, tier)
	}
	x.entries[h] = e
	if e.node != 0 {
		x.change(e.node, boolean(tier == gpu), boolean(tier != gpu))
	}
	if n != 0 && e.node != n {
		x.bind(h, n)
		x.adopt(h, n)
	}
}

func boolean(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// remove counts one copy less.
func (x *Index) remove(h kvevents.Hash, tier tier) {
	e, ok := x.entries[h]
	if tier != gpu {
		if !ok || !x.tiers.remove(h, tier) {
			x.stats.UnknownLower++
			return
		}
		e.low--
		x.count(h, e, 0, -1)
		return
	}
	if !ok || e.gpu == 0 {
		if x.foreign {
			x.stats.Foreign++
			return
		}
		x.stats.Unknown++
		x.broken = true
		return
	}
	e.gpu--
	x.count(h, e, -1, 0)
}

// count enters an entry that lost a copy. One without copies stays only as long as its node does: a block may be
// stored behind it.
func (x *Index) count(h kvevents.Hash, e entry, gpu, low int32) {
	if e.node != 0 {
		x.change(e.node, gpu, low)
	}
	if e.gpu > 0 || e.low > 0 || e.node != 0 && x.tree.at(e.node).hash == h {
		x.entries[h] = e
		return
	}
	delete(x.entries, h)
	x.orphans.remove(h)
}

// change adds to a node's counts, and notes it if the block appeared or went.
func (x *Index) change(r ref, gpu, low int32) {
	n := x.tree.at(r)
	had, before := n.resident(), n.stored()
	n.copies += gpu
	n.low += low
	switch after := n.stored(); {
	case after && !before:
		x.tree.stored++
	case before && !after:
		x.tree.stored--
	}
	if n.flags&touched != 0 || n.resident() == had && (n.copies != 0 || n.low != 0) {
		return
	}
	n.flags |= touched
	if had {
		n.flags |= was
	}
	x.touched = append(x.touched, r)
}

// A smaller block is believed after that many of them: the last page of a prompt may be shorter in SGLang.
const oddPages = 16

// learn takes from an event how the engine cuts prompts.
func (x *Index) learn(g geometry) {
	now := *x.geo.Load()
	assumed := x.assumed
	x.assumed = false
	if now == g {
		x.odd = 0
		return
	}
	if x.odd++; g.size < now.size && x.odd < oddPages && !assumed {
		return
	}
	x.odd = 0
	x.geo.Store(&g)
	if now.size > 0 {
		x.stats.Recut++
		x.forget()
		return
	}
	n := naming{chainer: chainer{seed: x.seed}}
	for s := x.reqs.oldest; s != 0; {
		p, next := x.reqs.at(s).waiting, x.reqs.at(s).newer
		x.take(s)
		x.tree.at(root).ends--
		x.release(x.reqs.at(s))
		tokens := p.all()
		n.list = n.prompt(n.list[:0], g, chain{}, tokens, p.extra, 0, len(tokens))
		x.enter(s, g, n.list)
		if r := x.reqs.at(s); r.is(served) {
			x.answered(r)
		}
		x.makeRoom()
		s = next
	}
}

// forget drops all requests: their blocks were cut in another way.
func (x *Index) forget() {
	for x.reqs.oldest != 0 {
		x.stats.Forgotten++
		x.drop(x.reqs.oldest)
	}
}
