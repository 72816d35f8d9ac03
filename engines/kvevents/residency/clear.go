package residency

import "github.com/ragpilot/ragpilot/engines/kvevents"

// Clear says that nothing is resident any more, or that nothing is known of what is. Requests that have ended, and of
// which something was resident, are reported as lost and dropped. The others stay registered: what they store may come
// right behind, in the same batch.
//
// Call it with [kvevents.Requested] when you empty the engine's cache yourself: engines publish that only with their
// next step, when the next request runs. What they publish then is not reported a second time.
func (x *Index) Clear(cause kvevents.Cause) {
	x.mu.Lock()
	if cause == kvevents.Resyncing {
		x.rebuild()
	} else {
		x.clear(cause)
	}
	x.mu.Unlock()
	x.deliver()
}

// Complete says whether the batches that were applied are all there were.
func (x *Index) Complete(ok bool) {
	x.mu.Lock()
	x.complete = ok
	x.reached = x.reached || ok
	x.spoken = x.spoken || ok
	if x.rebuilds {
		x.rebuilt()
	}
	x.mu.Unlock()
	x.deliver()
}

// rebuild forgets what is resident, and keeps all requests where they are: the same events are about to come again.
func (x *Index) rebuild() {
	for i := range x.tree.nodes[root+1:] {
		n := &x.tree.nodes[int(root)+1+i]
		n.copies, n.low = 0, 0
	}
	x.tree.stored = 0
	x.reset()
	for s := x.reqs.oldest; s != 0; s = x.reqs.at(s).newer {
		q := x.reqs.at(s)
		if q.waiting != nil {
			continue
		}
		if !x.rebuilds {
			q.before = q.blocks
		}
		x.take(s)
		x.place(s, x.tree.missing(q.end))
	}
	x.rebuilds = true
}

// rebuilt reports what the requests have lost in comparison with what they had before.
func (x *Index) rebuilt() {
	x.rebuilds = false
	for s := x.reqs.oldest; s != 0; {
		q := x.reqs.at(s)
		next := q.newer
		before := q.before
		q.before = 0
		x.report(s, before)
		s = next
	}
	for r := root + 1; int(r) < len(x.tree.nodes); r++ {
		x.prune(r)
	}
	x.makeRoom()
}

// reset forgets the engine's blocks, but not their places.
func (x *Index) reset() {
	clear(x.entries)
	x.tiers.reset()
	x.orphans.reset()
	x.touched, x.taken = x.touched[:0], x.taken[:0]
	x.broken, x.foreign = false, false
}

// Inconsistent reports whether batches did not fit each other though all are said to be there: a block was removed
// that was never stored, or stored behind one that was not. It is false again once the index was cleared.
func (x *Index) Inconsistent() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.complete && !x.foreign && (x.broken || len(x.orphans.blocks) > 0)
}

// survivor is a request that stays: its path is made again.
type survivor struct {
	slot slot
	path []chain
}

func (x *Index) clear(cause kvevents.Cause) {
	x.stats.Clears++
	var stay []survivor
	var nodes []ref
	for s := x.reqs.oldest; s != 0; {
		q := x.reqs.at(s)
		next := q.newer
		switch {
		case q.waiting != nil:
			q.at, q.next, q.prev = 0, 0, 0
		case q.is(ended) && q.is(seen):
			x.gone(s)
		default:
			if q.blocks > 0 {
				x.stats.Updates++
				x.pending = append(x.pending, x.about(q))
			}
			nodes = x.tree.path(nodes[:0], q.end)
			path := make([]chain, len(nodes))
			for i, r := range nodes {
				path[i] = x.tree.at(r).chain
			}
			q.flags &^= seen
			stay = append(stay, survivor{s, path})
		}
		s = next
	}
	x.tree.reset()
	x.reset()
	x.rebuilds, x.unseen = false, 0
	x.spoken = x.spoken && cause != kvevents.Disconnected
	x.tree.at(root).ends += int32(x.waiting)
	for _, v := range stay {
		x.enter(v.slot, geometry{size: int(x.reqs.at(v.slot).size)}, v.path)
	}
	x.pending = append(x.pending, Update{Replica: x.cfg.Replica, Cleared: cause})
}

// gone reports and drops a request without touching the tree, which is about to go.
func (x *Index) gone(s slot) {
	q := x.reqs.at(s)
	x.stats.Updates++
	x.stats.Lost++
	u := x.about(q)
	u.Lost = true
	x.pending = append(x.pending, u)
	x.reqs.remove(s)
}
