package proxy

import "github.com/ragpilot/ragpilot/conversation"

// settle decides how a request is forwarded: planned, or as it came in shadow mode and where its session is held out. The
// settings decide that for conversations that begin. One that has begun otherwise goes on so, as the engine has its messages
// in the cache.
func (x *exchange) settle(b *body, shadow bool) conversation.Conversation {
	c := conversation.Conversation{
		Tenant: x.tenant, Model: b.model, Name: x.control.session, Key: x.control.key(),
		Look: conversation.Look{System: x.control.system, Tools: x.control.tools && (x.dialect != responses || x.p.opt.Compat == nil), Form: x.control.extract},
	}
	x.asCame, x.result.Shadow = x.heldOut || shadow, shadow
	if asCame, known := x.p.engine.Went(c, b); known && asCame != x.asCame {
		x.asCame, x.carried, x.heldOut, x.result.Shadow = asCame, true, false, false
	}
	switch {
	case !x.plans():
		c.Mode = conversation.AsCame
	case x.asCame:
		c.Mode = conversation.DryRun
	}
	return c
}

// plans reports whether the request is planned, be it to say what would be done.
func (x *exchange) plans() bool { return !x.heldOut && (!x.carried || !x.asCame) }

// plan has the request planned, and returns the edits of its bytes. An error is the context's.
func (x *exchange) plan(b *body, c conversation.Conversation) ([]edit, error) {
	if x.plans() {
		x.enter("plan")
		x.result.Messages = len(b.items)
		if len(b.items) > 0 && b.items[0].message < 0 {
			x.result.Messages--
		}
	}
	c.Request, c.EvictedByID = x.promptID(), x.told()
	c.Ordered = x.stage.Ordered
	if c.Recorded = x.p.opt.Compat != nil; c.Recorded {
		c.Place = x.p.opt.Compat.Order(x.tenant, x.control.alpha, x.control.linkage, x.result.Shadow)
	}
	turn, err := x.p.engine.Begin(x.r.Context(), c, b)
	if err != nil {
		return nil, err
	}
	x.turn = turn
	if !x.plans() {
		return nil, nil
	}
	x.result.count(turn, b)
	x.changed = len(turn.Edits) > 0
	return b.edits(turn.Edits), nil
}
