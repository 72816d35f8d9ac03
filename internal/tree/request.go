package tree

type request struct {
	id           string
	end          Node
	prev, next   int32 // requests that end at the same node
	older, newer int32 // order of arrival
	owner        string
	served       bool
}

// Len returns the number of live requests.
func (t *Tree) Len() int { return len(t.byID) }

// Dropped returns how many requests have left the index for its capacity or for their number.
func (t *Tree) Dropped() int { return t.dropped }

// Resident returns the number of tokens of the request's path that are still in the index.
func (t *Tree) Resident(id string) (tokens int, ok bool) {
	r, ok := t.byID[id]
	if !ok {
		return 0, false
	}
	return t.Depth(t.reqs[r].end), true
}

// Serve marks the request as answered and tells whether it is live and was not marked before.
func (t *Tree) Serve(id string) (fresh, ok bool) {
	r, ok := t.byID[id]
	if !ok {
		return false, false
	}
	fresh = !t.reqs[r].served
	t.reqs[r].served = true
	return fresh, true
}

// Owner returns what Insert was given as owner, and whether the request was marked by Serve.
func (t *Tree) Owner(id string) (owner string, served, ok bool) {
	r, ok := t.byID[id]
	if !ok {
		return "", false, false
	}
	return t.reqs[r].owner, t.reqs[r].served, true
}

// Extend lengthens the last block of the request's path by tokens, if nothing follows it.
func (t *Tree) Extend(id string, tokens int) {
	r, ok := t.byID[id]
	if !ok {
		return
	}
	n := &t.nodes[t.reqs[r].end]
	if len(n.kids) > 0 {
		return
	}
	n.tokens += int32(tokens)
	n.depth += int32(tokens)
	t.tokens += tokens
	t.fit()
}

// Remove takes a request out: O(h) nodes, none of which another request uses.
func (t *Tree) Remove(id string) bool {
	r, ok := t.byID[id]
	if ok {
		t.removeRequest(r)
	}
	return ok
}

func (t *Tree) removeRequest(r int32) {
	end := t.reqs[r].end
	t.detach(r)
	t.forget(r)
	t.prune(end)
}

// Shrink makes the request end at the last node of its path that lies within tokens; what only it used behind
// that is removed. Nothing left: as Remove.
func (t *Tree) Shrink(id string, tokens int) bool {
	r, ok := t.byID[id]
	if !ok {
		return false
	}
	end := t.reqs[r].end
	to := end
	for to != Root && t.Depth(to) > tokens {
		to = t.nodes[to].parent
	}
	t.detach(r)
	if to == Root {
		t.forget(r)
	} else {
		t.attach(r, to)
	}
	t.prune(end)
	return true
}

// prune removes n and what is above it as long as nobody uses it.
func (t *Tree) prune(n Node) {
	for n != Root && t.nodes[n].reqs == none && len(t.nodes[n].kids) == 0 {
		parent := t.nodes[n].parent
		t.cut(n)
		n = parent
	}
}

func (t *Tree) newRequest(id string) int32 {
	var r int32
	if k := len(t.freeReq); k > 0 {
		r = t.freeReq[k-1]
		t.freeReq = t.freeReq[:k-1]
	} else {
		r = int32(len(t.reqs))
		t.reqs = append(t.reqs, request{})
	}
	t.reqs[r] = request{id: id, prev: none, next: none, older: t.newest, newer: none}
	if t.newest != none {
		t.reqs[t.newest].newer = r
	} else {
		t.oldest = r
	}
	t.newest = r
	t.byID[id] = r
	return r
}

func (t *Tree) forget(r int32) {
	x := &t.reqs[r]
	if x.older != none {
		t.reqs[x.older].newer = x.newer
	} else {
		t.oldest = x.newer
	}
	if x.newer != none {
		t.reqs[x.newer].older = x.older
	} else {
		t.newest = x.older
	}
	delete(t.byID, x.id)
	t.forgot(x.id)
	*x = request{prev: none, next: none, older: none, newer: none}
	t.freeReq = append(t.freeReq, r)
}

func (t *Tree) attach(r int32, n Node) {
	x, e := &t.reqs[r], &t.nodes[n]
	x.end, x.prev, x.next = n, none, e.reqs
	if e.reqs != none {
		t.reqs[e.reqs].prev = r
	}
	e.reqs = r
}

func (t *Tree) detach(r int32) {
	x := &t.reqs[r]
	if x.prev != none {
		t.reqs[x.prev].next = x.next
	} else {
		t.nodes[x.end].reqs = x.next
	}
	if x.next != none {
		t.reqs[x.next].prev = x.prev
	}
	x.prev, x.next = none, none
}
