package residency

// taken is a request that was taken out of its list because its resident prefix may have changed.
type taken struct {
	slot slot
	at   ref // the first block that it misses, if that is known already
}

// settle works out what the blocks that came and went since the last call mean for requests.
//
// Every request stands in one list: at the first block of its path that is missing, or at its last block if none is.
// So a block that came concerns the requests in its own list and no others, and a block that went those that stand at
// it or behind it, as far as blocks were resident before. Nothing is kept per block and request.
func (x *Index) settle() {
	if len(x.touched) == 0 {
		return
	}
	for _, r := range x.touched {
		n := x.tree.at(r)
		switch had := n.flags&was != 0; {
		case !had && n.resident():
			x.collect(r, 0)
		case had && !n.resident():
			x.lose(r)
		}
	}
	for _, r := range x.marked {
		x.tree.at(r).flags &^= visited
	}
	x.marked = x.marked[:0]
	for _, t := range x.taken {
		at := t.at
		if at == 0 {
			at = x.tree.missing(x.reqs.at(t.slot).end)
		}
		old := x.reqs.at(t.slot).blocks
		x.place(t.slot, at)
		x.report(t.slot, old)
	}
	x.taken = x.taken[:0]
	for _, r := range x.touched {
		x.tree.at(r).flags = 0
	}
	for _, r := range x.touched {
		x.prune(r)
	}
	x.touched = x.touched[:0]
	x.makeRoom()
}

// lose collects the requests that could read over r until now.
func (x *Index) lose(r ref) {
	first := x.tree.missing(r)
	if n := x.tree.at(first); first != r && n.depth == 1 && n.flags&visited == 0 {
		// Blocks of requests that miss their first one: they are lost when the last of these has gone.
		x.collect(first, first)
	}
	x.stack = append(x.stack[:0], r)
	for len(x.stack) > 0 {
		at := x.stack[len(x.stack)-1]
		x.stack = x.stack[:len(x.stack)-1]
		n := x.tree.at(at)
		if n.flags&visited != 0 {
			continue
		}
		n.flags |= visited
		x.marked = append(x.marked, at)
		x.collect(at, first)
		if !n.before() {
			continue
		}
		for k := n.kids; k != 0; k = x.tree.at(k).next {
			x.stack = append(x.stack, k)
		}
	}
}

// collect takes all requests out of the list of r.
func (x *Index) collect(r, first ref) {
	for s := x.tree.at(r).list; s != 0; {
		q := x.reqs.at(s)
		next := q.next
		q.next, q.prev, q.at = 0, 0, 0
		x.taken = append(x.taken, taken{s, first})
		s = next
	}
	x.tree.at(r).list = 0
}

// place puts a request into the list where it belongs; first is the first block that it misses, 0 if none.
func (x *Index) place(s slot, first ref) {
	q := x.reqs.at(s)
	at := first
	if first == 0 {
		at = q.end
		q.blocks = x.tree.at(at).depth
	} else {
		q.blocks = x.tree.at(at).depth - 1
	}
	if q.blocks > 0 && !q.is(seen) {
		q.flags |= seen
		if q.is(served) {
			x.unseen = 0
		}
	}
	n := x.tree.at(at)
	q.at, q.prev, q.next = at, 0, n.list
	if n.list != 0 {
		x.reqs.at(n.list).prev = s
	}
	n.list = s
}

// take takes one request out of its list.
func (x *Index) take(s slot) {
	q := x.reqs.at(s)
	if q.at == 0 {
		return
	}
	if q.prev != 0 {
		x.reqs.at(q.prev).next = q.next
	} else {
		x.tree.at(q.at).list = q.next
	}
	if q.next != 0 {
		x.reqs.at(q.next).prev = q.prev
	}
	q.next, q.prev, q.at = 0, 0, 0
}

// about begins an update.
func (x *Index) about(q *request) Update {
	return Update{Replica: x.cfg.Replica, RequestID: q.id, Prompt: int(q.length)}
}

// report enters an update if the request lost something, and drops it if it lost everything.
func (x *Index) report(s slot, old int32) {
	if x.rebuilds {
		return
	}
	q := x.reqs.at(s)
	lost := q.blocks == 0 && q.is(ended) && q.is(seen) && !x.tree.held(q.end)
	if q.blocks >= old && !lost {
		return
	}
	u := x.about(q)
	if n, tier := x.loadable(q); tier != "" {
		u.Loadable, u.Tier = n, tier
	}
	if lost && u.Loadable > 0 {
		if lost = false; q.blocks >= old {
			return
		}
	}
	x.stats.Updates++
	u.Resident, u.Lost = int(q.blocks)*int(q.size), lost
	x.pending = append(x.pending, u)
	if lost {
		x.stats.Lost++
		x.drop(s)
	}
}
