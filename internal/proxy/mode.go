package proxy

import (
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// shadowScope ends the names of scopes whose prompts were planned in shadow mode, and never sent so.
const shadowScope = " (shadow)"

func isShadow(s contextpilot.Scope) bool { return strings.HasSuffix(s.Replica, shadowScope) }

// conversation is what a request goes on with.
type conversation struct {
	memo   *memo
	chains []chain // of its items
	by     *session
}

// settle decides how a request is forwarded: planned, or as it came in shadow mode and where its session is held out. The
// settings decide that for conversations that begin. One that has begun otherwise goes on so, as the engine has its messages
// in the cache.
func (x *exchange) settle(b *body, shadow bool) conversation {
	state := x.p.state(x.tenant)
	c := conversation{memo: state.memo, chains: make([]chain, len(b.items)), by: state.session(x.control.session, x.p.opt.Memory)}
	last := firstChain(x.tenant, b.model, x.control.key())
	for i, it := range b.items {
		last = nextChain(last, b.raw[it.from:it.to])
		c.chains[i] = last
	}
	x.asCame, x.result.Shadow = x.heldOut || shadow, shadow
	if !b.begins() {
		if asCame, known := c.memo.went(c.chains, c.by); known && asCame != x.asCame {
			x.asCame, x.carried, x.heldOut, x.result.Shadow = asCame, true, false, false
		}
	}
	if x.asCame {
		for i := range c.chains {
			c.chains[i] = aside(c.chains[i])
		}
	}
	return c
}

// begins reports whether no message of a conversation can have been answered: there is one behind the system's, or none.
func (b *body) begins() bool {
	for i, it := range b.items {
		if it.message >= 0 && b.role(i) != system {
			return i == len(b.items)-1
		}
	}
	return true
}

// plans reports whether the request is planned, be it to say what would be done.
func (x *exchange) plans() bool { return !x.heldOut && (!x.carried || !x.asCame) }

// pass remembers that the items were forwarded as they came, and not looked at: the last one stands for all.
func (x *exchange) pass(b *body, c conversation) {
	last, known := c.memo.longest(c.chains, c.by)
	if n := len(b.items); known < n {
		front := last == nil || last.front
		for i := known; front && i < n; i++ {
			front = b.items[i].message < 0 || b.role(i) == system
		}
		last = c.memo.add(&turn{chain: c.chains[n-1], before: last, items: n, front: front}, c.by)
	}
	c.memo.sent(last, c.by, true)
}
