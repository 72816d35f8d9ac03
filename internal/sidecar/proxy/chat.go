package proxy

import (
	"cmp"
	"net/http"

	"github.com/tidwall/gjson"
	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/internal/base/validjson"
)

// chat serves one of the endpoints with messages.
func (p *Proxy) chat(d dialect) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		x := p.receive(w, r, d)
		raw, ok := p.read(w, r)
		if !ok {
			return
		}
		x.enter("parse")
		if !validjson.Valid(raw) {
			x.leave("invalid")
			writeError(w, http.StatusBadRequest, "Invalid JSON body")
			return
		}
		if p.refuseShared(w, r, raw) {
			x.leave("stored")
			return
		}
		x.raw = raw
		if err := x.prepare(); err != nil {
			x.abandon(err)
			return
		}
		x.ready = p.opt.Now()
		if err := x.hold(); err != nil {
			x.abandon(err)
			return
		}
		if p.opt.Provider != nil {
			x.cache = p.opt.Provider.Sent(x.tenant, r.URL.Path, x.send)
		}
		x.follow(true)
		x.leave("")
		x.forward("Backend error", func(resp *http.Response) func(usage) {
			x.setResult(resp.Header)
			if p.opt.Provider == nil || resp.StatusCode >= 300 {
				return nil
			}
			return func(u usage) { x.settle(u, resp.Header) }
		})
	}
}

// abandon answers a client that has left before anything was sent for it.
func (x *exchange) abandon(err error) {
	x.leave("client gone")
	x.ready = x.p.opt.Now()
	x.end(unknown, err)
	writeError(x.w, statusGone, "The client has gone")
}

// prepare makes the bytes to send. An error is the context's.
func (x *exchange) prepare() error {
	x.send = x.raw
	if x.control.off {
		x.mode = unplanned
		x.identify()
		return nil
	}
	b, ok := readBody(x.raw, x.dialect, x.p.opt.Compat != nil)
	x.asks = b.ids.asks
	if b.blocks.says { // they are places in its texts
		x.mode = unplanned
		x.identify()
		return nil
	}
	if !ok {
		x.send = x.p.salted(x.tenant, x.raw)
		if b.root.IsObject() && !b.root.Get("messages").Exists() {
			x.identify()
		}
		return nil
	}
	b = x.stabilise(b)
	x.body, x.model, x.session = &b, b.model, sessionOf(&x.control, &b)
	if x.control.session == "" && x.stabilised.Begins != "" {
		x.session = x.stabilised.Begins
	}
	c := x.choose()
	x.name(&b.ids, !x.mode.asCame())
	edits, err := x.plan(c)
	if err != nil {
		return err
	}
	if x.mode == shadow && x.p.opt.KeepTexts {
		x.would = splice(b.raw, edits)
	}
	x.track()
	if x.mode.asCame() {
		x.send = x.p.salted(x.tenant, x.raw)
		return nil
	}
	x.send = x.withBlocks(splice(b.raw, b.ids.add(b.raw, x.id, x.p.salt(x.tenant), edits)))
	if c := x.p.opt.Provider; c != nil {
		x.send = c.Mark(x.r.URL.Path, x.send)
	}
	return nil
}

// choose sets the mode, and returns the conversation with it.
func (x *exchange) choose() conversation.Conversation {
	inShadow, share := x.p.opt.Live()
	x.share = share
	x.mode = modeOf(inShadow, share > 0 && float64(xxh3.HashString(x.session)>>11)/(1<<53) < share)
	c := conversation.Conversation{
		Tenant: x.tenant, Model: x.model, Name: x.control.session, Key: x.control.key(),
		Look: conversation.Look{
			System: x.control.system, Tools: x.control.tools && (x.dialect != responses || x.p.opt.Compat == nil), Form: x.control.extract,
		},
	}
	if asCame, known := x.p.engine.Went(c, x.body); known && asCame != x.mode.asCame() {
		if x.mode = stillRewrite; asCame {
			x.mode = stillAsCame
		}
	}
	switch {
	case !x.mode.planned():
		c.Mode = conversation.AsCame
	case x.mode.asCame():
		c.Mode = conversation.DryRun
	}
	return c
}

// plan has the request planned, and returns the edits of its bytes. An error is the context's.
func (x *exchange) plan(c conversation.Conversation) ([]edit, error) {
	if x.mode.planned() {
		x.enter("plan")
		x.result.Messages = len(x.body.items)
		if len(x.body.items) > 0 && x.body.items[0].message < 0 {
			x.result.Messages--
		}
	}
	c.Request, c.EvictedByID = x.promptID(), x.sendsID()
	c.Ordered = x.stage.Ordered
	if c.Recorded = x.p.opt.Compat != nil; c.Recorded {
		c.Place = x.p.opt.Compat.Order(x.tenant, x.control.alpha, x.control.linkage, x.mode.shadow())
	}
	turn, err := x.p.engine.Begin(x.r.Context(), c, x.body)
	if err != nil {
		return nil, err
	}
	x.turn = turn
	if !x.mode.planned() {
		return nil, nil
	}
	x.result.count(turn, x.body)
	x.result.Shadow = x.mode.shadow()
	x.rewritten = len(turn.Edits) > 0 || x.result.Stabilised
	return x.body.edits(turn.Edits), nil
}

// identify gives the engine the request's ID, as was recorded also of requests that are switched off or have no messages.
func (x *exchange) identify() {
	root := gjson.ParseBytes(x.raw)
	if !root.IsObject() {
		return
	}
	m := readIDs(root)
	x.asks = m.asks
	x.name(&m, true)
	x.track()
	x.send = splice(x.raw, m.add(x.raw, x.id, x.p.salt(x.tenant), nil))
}

// name chooses the request's ID, if the engine is one that reports evictions by it: the client's own, or a new one where the
// body may be given it.
func (x *exchange) name(m *ids, give bool) {
	if x.dialect == responses || x.p.opt.Index == nil || x.p.opt.Provider != nil || !x.p.opt.Index.HasIndex(x.tenant) {
		return
	}
	id, free := m.own()
	if free && give {
		id = cmp.Or(clientID(x.r), newID())
	}
	x.id, x.indexed = id, id != ""
}

// track makes the ID known to the index endpoints, where it belongs there.
func (x *exchange) track() {
	if x.indexed {
		x.p.opt.Index.Track(x.tenant, x.id)
	}
}
