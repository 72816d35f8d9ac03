package dispatch

import "slices"

// maxBegun bounds the prompts that a replica remembers as computed. One that is forgotten costs a wait, no more.
const maxBegun = 32

// beside keeps the runs of one replica from computing what they share at the same time. Their trees know nothing of each other: a call
// waits for one of another run whose answer has not begun, if they share more than what is computed by at least MinShared bytes.
// It is used while there are several runs.
type beside struct {
	coming prompts   // of calls whose answer has not begun
	begun  prompts   // of calls whose answer has
	order  []*prompt // those of begun, oldest first
	parked []parked
}

// prompt is the flattened text of a call.
type prompt struct {
	text string
	item *item // nil: its answer has begun
}

// parked is a call that waits for another to begin.
type parked struct {
	run   *run
	item  *item
	ahead *item
}

// prompts are sorted by their texts.
type prompts []*prompt

// find returns the place of the first prompt that is not before a text, the length of the longest prefix that the text shares with one of
// the prompts, and which one that is: it stands next to that place.
func (p prompts) find(text string) (at, shared int, with *prompt) {
	before, after := -1, len(p)
	sharedBefore, sharedAfter := 0, 0 // what is between the two shares the lesser
	for after-before > 1 {
		at := (before + after) / 2
		n := min(sharedBefore, sharedAfter)
		q := p[at].text
		n += common(q[n:], text[n:])
		if n == len(text) || n < len(q) && q[n] > text[n] {
			after, sharedAfter = at, n
		} else {
			before, sharedBefore = at, n
		}
	}
	switch {
	case sharedBefore > sharedAfter:
		return after, sharedBefore, p[before]
	case sharedAfter > 0:
		return after, sharedAfter, p[after]
	}
	return after, 0, nil
}

func (p *prompts) add(q *prompt) {
	at, _, _ := p.find(q.text)
	*p = slices.Insert(*p, at, q)
}

func (p *prompts) remove(q *prompt) {
	at, _, _ := p.find(q.text)
	for ; at < len(*p); at++ {
		if (*p)[at] == q {
			*p = slices.Delete(*p, at, at+1)
			return
		}
	}
}

// add gives a replica a run.
func (r *replica) add(x *run) {
	r.runs = append(r.runs, x)
	if len(r.runs) != 2 {
		return
	}
	first := r.runs[0]
	for _, it := range first.tree.items {
		if it.state == flying && it.epoch == first.epoch && it.prompt == nil {
			r.sent(it)
		}
	}
}

// sent notes that a call is with the engine.
func (r *replica) sent(x *item) {
	x.prompt = &prompt{text: x.flat(), item: x}
	x.text = ""
	if x.begun {
		r.remember(x)
		return
	}
	r.coming.add(x.prompt)
}

// remember notes that a prompt is computed.
func (r *replica) remember(x *item) {
	p := x.prompt
	p.item, x.prompt = nil, nil
	r.begun.add(p)
	if r.order = append(r.order, p); len(r.order) > maxBegun {
		r.begun.remove(r.order[0])
		r.order = r.order[1:]
	}
}

// came notes that the answer to a call has begun, or that the attempt has ended, and lets those go on that waited for it.
func (r *replica) came(x *item, begun bool) {
	if x.prompt != nil {
		r.coming.remove(x.prompt)
		if begun {
			r.remember(x)
		}
		x.prompt = nil
	}
	r.parked = slices.DeleteFunc(r.parked, func(p parked) bool {
		if p.ahead == x {
			p.run.tree.push(p.item)
		}
		return p.ahead == x
	})
}

// park has a call wait if one of another run is to begin before it, and reports whether it does.
func (r *replica) park(x *run, it *item, least int) bool {
	if len(r.coming) == 0 || least < 1 {
		return false
	}
	_, n, ahead := r.coming.find(it.flat())
	if n < least {
		return false
	}
	_, computed, _ := r.begun.find(it.flat())
	if n-max(computed, it.node.computed()) < least {
		return false
	}
	it.state = behind
	r.parked = append(r.parked, parked{x, it, ahead.item})
	return true
}

// unpark forgets a run that leaves the replica.
func (r *replica) unpark(x *run) {
	r.parked = slices.DeleteFunc(r.parked, func(p parked) bool {
		if p.run == x {
			p.item.state = waiting
		}
		return p.run == x
	})
	if len(r.runs) < 2 {
		r.begun, r.order = nil, nil
	}
}

// flat returns the flattened text of a call, and keeps it until the call is sent.
func (x *item) flat() string {
	if x.text == "" {
		x.text = flatten(x.call.Request)
	}
	return x.text
}

// computed returns the length of the longest prefix above a node, or of its own, that is laid down.
func (n *node) computed() int {
	for !n.laid {
		n = n.parent
	}
	return n.depth
}
