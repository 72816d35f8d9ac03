package tree

import "iter"

type request struct {
	id           string
	end          Node
	prev, next   int32  // requests that end at the same node; 0: none
	older, newer int32  // order of arrival
	state        uint32 // the bits served and cut
	length       int32  // tokens of its path when it was inserted
	sure         int32  // tokens of it that were sure then
	since        uint32 // clock when it was inserted or, once it is served, answered or sent again
}

const (
	served = 1 << iota // the request was answered
	cut                // it does not end any more where it was sent to
)

// Len returns the number of live requests.
func (t *Tree) Len() int { return t.byID.n }

// Dropped returns how many requests have left the index for its capacity or for their number.
func (t *Tree) Dropped() int { return t.dropped }

// Latest goes through the live requests, the one that came last first, and yields their IDs and the nodes that they end
// at. The tree must not be changed meanwhile. O(1) a request.
func (t *Tree) Latest() iter.Seq2[string, Node] {
	return func(yield func(string, Node) bool) {
		for r := t.newest; r != 0; {
			x := t.reqs.at(r)
			if !yield(x.id, x.end) {
				return
			}
			r = x.older
		}
	}
}

// Resident returns the number of tokens of the request's path that are still in the index.
func (t *Tree) Resident(id string) (tokens int, ok bool) {
	r := t.find(id)
	if r == 0 {
		return 0, false
	}
	return t.Depth(t.reqs.at(r).end), true
}

// Length returns how many tokens the request's path had when it was inserted; 0: it is not live.
func (t *Tree) Length(id string) int {
	r := t.find(id)
	if r == 0 {
		return 0
	}
	return int(t.reqs.at(r).length)
}

// Serve marks the request as answered and reports whether it is live and was not marked before. Its path is sure from now
// on, see [Tree.Contradict]: O(h) for a path of which nothing was.
func (t *Tree) Serve(id string) (fresh, ok bool) {
	if r := t.find(id); r != 0 {
		x := t.reqs.at(r)
		fresh, ok = x.state&served == 0, true
		if fresh {
			x.state |= served
			x.since = t.clock
			t.assure(x.end)
		}
	}
	t.shadow.serve(t, id, fresh, ok)
	return fresh, ok
}

// Resend notes that a live request's prompt is sent once more as it was: what is left of its path was sent now, and the
// request came last. It returns what [Tree.Resident] does. O(h).
func (t *Tree) Resend(id string) (tokens int, ok bool) {
	if r := t.find(id); r != 0 {
		t.leave(r)
		t.arrive(r)
		x := t.reqs.at(r)
		t.touch(x.end)
		t.stamp(x.end)
		if x.state&served != 0 { // an answer that found less before this does not contradict it
			x.since = t.clock
		}
		tokens, ok = t.Depth(x.end), true
	}
	t.shadow.resend(t, id, ok)
	return tokens, ok
}

// Served reports whether the request is live, and was marked by Serve.
func (t *Tree) Served(id string) (answered, live bool) {
	r := t.find(id)
	return r != 0 && t.reqs.at(r).state&served != 0, r != 0
}

// Extend lengthens the last block of the request's path by tokens, if it is resident and nothing follows it.
func (t *Tree) Extend(id string, tokens int) {
	if r := t.find(id); r != 0 {
		x := t.reqs.at(r)
		if n := t.node(x.end); n.fan&^sure == 0 && x.state&cut == 0 {
			full := deeper(n.depth, tokens)
			t.tokens += int(full - n.depth)
			n.depth = full
			t.fit()
		}
	}
	t.shadow.extend(t, id, tokens)
}

// Remove takes a request out: O(h) nodes, none of which another request uses.
func (t *Tree) Remove(id string) bool {
	r := t.find(id)
	if r != 0 {
		t.remove(r)
	}
	t.shadow.remove(t, id, r != 0)
	return r != 0
}

// RemoveOldest removes the request that came first, as Remove. It returns false if there is none.
func (t *Tree) RemoveOldest() bool {
	if t.oldest == 0 {
		return false
	}
	return t.Remove(t.reqs.at(t.oldest).id)
}

func (t *Tree) remove(r int32) {
	end := t.reqs.at(r).end
	t.detach(r)
	t.forget(r)
	t.prune(end, Root)
}

// Shrink notes that only the first tokens of the request's path are resident. What only it used behind them is
// removed; a block that they end in stays in part, unless other requests use it. Nothing left: as Remove.
func (t *Tree) Shrink(id string, tokens int) bool {
	r := t.find(id)
	if r != 0 {
		t.shorten(r, tokens)
	}
	t.shadow.shrink(t, id, tokens, r != 0)
	return r != 0
}

func (t *Tree) shorten(r int32, tokens int) {
	end := t.reqs.at(r).end
	to, behind := end, none // the last node that lies within tokens, and the one behind it
	for to != Root && t.Depth(to) > tokens {
		to, behind = t.node(to).parent, to
	}
	if behind != none && t.Depth(to) < tokens {
		t.detach(r)
		t.prune(end, behind)
		if x := t.node(behind); x.first == 0 {
			t.tokens -= int(x.depth) - tokens
			x.depth = int32(tokens)
			x.fan |= inPart
			t.attach(r, behind)
			t.reqs.at(r).state |= cut
			return
		}
		t.attach(r, behind)
		end = behind // others use it
	}
	t.end(r, to)
	t.prune(end, Root)
}

// end makes a request end at another node; at the root it is forgotten.
func (t *Tree) end(r int32, n Node) (live bool) {
	if t.reqs.at(r).end != n {
		t.reqs.at(r).state |= cut
	}
	t.detach(r)
	if n == Root {
		t.forget(r)
		return false
	}
	t.attach(r, n)
	return true
}

// prune removes n and what is above it, up to the node to, as long as no request uses it.
func (t *Tree) prune(n, to Node) {
	for n != to && t.node(n).first == 0 {
		parent := t.node(n).parent
		t.cut(n)
		n = parent
	}
}

// find returns the number of a live request, or 0.
func (t *Tree) find(id string) int32 {
	h := t.hash(id)
	r, at := t.byID.first(h)
	for r != 0 && t.reqs.at(r).id != id {
		r, at = t.byID.next(h, at)
	}
	return r
}

func (t *Tree) newRequest(id string) int32 {
	r := t.reqs.take()
	*t.reqs.at(r) = request{id: id}
	t.arrive(r)
	t.byID.add(t.hash(id), r)
	return r
}

// arrive makes r the newest request.
func (t *Tree) arrive(r int32) {
	x := t.reqs.at(r)
	x.older, x.newer = t.newest, 0
	if t.newest != 0 {
		t.reqs.at(t.newest).newer = r
	} else {
		t.oldest = r
	}
	t.newest = r
}

// leave takes r out of the order of arrival.
func (t *Tree) leave(r int32) {
	x := t.reqs.at(r)
	if x.older != 0 {
		t.reqs.at(x.older).newer = x.newer
	} else {
		t.oldest = x.newer
	}
	if x.newer != 0 {
		t.reqs.at(x.newer).older = x.older
	} else {
		t.newest = x.older
	}
}

func (t *Tree) forget(r int32) {
	t.leave(r)
	x := t.reqs.at(r)
	id := x.id
	t.byID.remove(t.hash(id), r)
	t.reqs.give(r)
	t.forgot(id)
}

func (t *Tree) attach(r int32, n Node) {
	x, first := t.reqs.at(r), t.ends(n)
	x.end, x.prev, x.next = n, 0, -*first
	if x.next != 0 {
		t.reqs.at(x.next).prev = r
	}
	*first = -r
}

func (t *Tree) detach(r int32) {
	x := t.reqs.at(r)
	if x.prev != 0 {
		t.reqs.at(x.prev).next = x.next
	} else {
		*t.ends(x.end) = -x.next
	}
	if x.next != 0 {
		t.reqs.at(x.next).prev = x.prev
	}
	x.prev, x.next = 0, 0
}
