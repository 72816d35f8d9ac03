package proxy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/internal/sidecar/cloudcache"
	"github.com/ragpilot/ragpilot/internal/sidecar/tracing"
)

// exchange is one chat request on its way.
type exchange struct {
	p       *Proxy
	w       http.ResponseWriter
	r       *http.Request
	dialect dialect
	began   time.Time
	tenant  string
	control control
	raw     []byte // as it came
	send    []byte // as it goes
	id      string // request ID for the engine, "" if it is told none
	model   string
	session string
	sent    time.Time
	heldOut bool
	asCame  bool    // nothing is changed: held out, shadow mode, or begun so
	carried bool    // forwarded as its conversation began, not as the settings say
	share   float64 // of sessions that are held out
	would   []byte  // in shadow mode what would have been sent, if texts are kept
	changed bool    // texts were changed, now or in earlier turns
	result  result
	cache   cloudcache.Handle
	settled bool // the provider's cache knows the answer's usage
	turn    *conversation.Turn
	body    *body // nil: it has no messages, or they were sent
	first   time.Duration
	begun   bool         // a byte of an answer that is no error has come
	stage   tracing.Span // of parsing, then of planning

	followed Followed    // nil: nobody follows it in the engine's cache
	header   http.Header // that it needs for that, instead of the client's
}

// chat serves one of the endpoints with messages.
func (p *Proxy) chat(d dialect) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{p: p, w: w, r: r, dialect: d, began: p.opt.Now(), tenant: tenantOf(r), control: readControl(r.Header), turn: new(conversation.Turn)}
		raw, ok := p.read(w, r)
		if !ok {
			return
		}
		x.enter("parse")
		if !valid(raw) {
			x.leave("invalid")
			writeError(w, http.StatusBadRequest, "Invalid JSON body")
			return
		}
		if p.refuseShared(w, r, raw) {
			x.leave("stored")
			return
		}
		x.raw, x.send = raw, raw
		if err := x.prepare(); err != nil {
			x.gone(err)
			return
		}
		if p.opt.Provider != nil {
			x.cache = p.opt.Provider.Sent(x.tenant, r.URL.Path, x.send)
		}
		x.follow(true)
		x.leave("")
		x.forward()
	}
}

// gone ends a request whose client has left before anything was sent for it.
func (x *exchange) gone(err error) {
	x.leave("client gone")
	x.sent = x.p.opt.Now()
	x.end(unknown, err)
	writeError(x.w, statusGone, "The client has gone")
}

// prepare makes the bytes to send. An error is the context's.
func (x *exchange) prepare() error {
	if x.control.off {
		x.identify()
		return nil
	}
	b, ok := readBody(x.raw, x.dialect, x.p.opt.Compat != nil)
	if b.blocks.says { // they are places in its texts
		x.control.off = true
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
	shadow, share := x.p.opt.Live()
	x.body = &b
	x.model, x.session, x.share = b.model, sessionOf(&x.control, &b), share
	x.heldOut = share > 0 && float64(xxh3.HashString(x.session)>>11)/(1<<53) < share
	c := x.settle(&b, shadow)
	x.name(&b.ids, !x.asCame)
	edits, err := x.plan(&b, c)
	if err != nil {
		return err
	}
	if x.result.Shadow && x.p.opt.KeepTexts && !x.heldOut {
		x.would = splice(b.raw, edits)
	}
	x.track()
	if x.asCame {
		x.send = x.p.salted(x.tenant, x.raw)
		return nil
	}
	x.send = x.withBlocks(splice(b.raw, b.ids.tell(b.raw, x.id, x.p.salt(x.tenant), edits)))
	if c := x.p.opt.Provider; c != nil {
		x.send = c.Mark(x.tenant, x.r.URL.Path, x.send)
	}
	return nil
}

// identify tells the engine the request's ID, as was recorded also of requests that are switched off or have no messages.
func (x *exchange) identify() {
	root := gjson.ParseBytes(x.raw)
	if !root.IsObject() {
		return
	}
	m := readIDs(root)
	x.name(&m, true)
	x.track()
	x.send = splice(x.raw, m.tell(x.raw, x.id, x.p.salt(x.tenant), nil))
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
	x.id = id
}

// track makes the ID known to the index endpoints.
func (x *exchange) track() {
	if x.id != "" {
		x.p.opt.Index.Track(x.tenant, x.id)
	}
}

// forward sends the request and reports when its answer has ended.
func (x *exchange) forward() {
	x.sent = x.p.opt.Now()
	ended := false
	end := func(u usage, err error) {
		if !ended {
			ended = true
			x.end(u, err)
		}
	}
	x.p.forward(x.w, x.r, outgoing{
		base: x.p.opt.Upstream, body: x.send, header: x.headers(), failed: "Backend error",
		answer: func(resp *http.Response) error {
			if !x.p.opt.KeepTexts {
				x.raw, x.send, x.body = nil, nil, nil // they were sent, and the answer may take minutes
			}
			x.head(resp.Header)
			if x.followed != nil {
				x.followed.Answer(resp)
			}
			var before func(usage)
			if x.p.opt.Provider != nil && resp.StatusCode < 300 {
				before = func(u usage) { x.tellCache(u, resp.Header) }
			}
			return x.p.watch(resp, x.began, func(took time.Duration) { x.start(took, resp.StatusCode < 300) }, before, func(u usage, err error) {
				if err == nil && resp.StatusCode >= 300 {
					err = errStatus
				}
				end(u, err)
			})
		},
	})
	end(unknown, errUnreachable)
}

// start is told of the answer's first byte. Of streams that break off, and of those that still run, the time to it is known, too.
func (x *exchange) start(took time.Duration, ok bool) {
	x.first, x.begun = took, ok
	if x.p.opt.Index == nil || x.dialect == responses || !ok {
		return
	}
	saved := x.result.CharsSaved
	if x.result.Shadow {
		saved = 0
	}
	x.p.opt.Index.RecordTTFT(x.tenant, took, saved)
}

// tellCache tells the provider's cache how an answer came out, and the client, if the headers are not sent yet.
func (x *exchange) tellCache(u usage, h http.Header) {
	if x.settled {
		return
	}
	x.settled = true
	ids := make([]string, len(x.turn.Plans))
	for i, pl := range x.turn.Plans {
		ids[i] = pl.Scope.Tenant + "\x00" + pl.ID // see Proxy.Expire
	}
	res := x.p.opt.Provider.Answered(x.cache.Carrying(ids...), u.counts())
	if h != nil {
		text, _ := json.Marshal(res)
		h.Set(CloudHeader, ascii(text))
	}
}

// head sets the response headers that say what was done.
func (x *exchange) head(h http.Header) {
	if !x.changed {
		return
	}
	x.result.Intercepted = true
	x.result.RequestID = x.id
	if x.result.Details == nil {
		x.result.Details = []detail{}
	}
	text, _ := json.Marshal(&x.result)
	if len(text) > maxResult {
		short := x.result
		short.Details = []detail{}
		text, _ = json.Marshal(&short)
	}
	h.Set(ResultHeader, ascii(text))
}

// maxResult is the length in bytes up to which the result header tells details. Many clients and proxies refuse answers
// with headers of more than 8 KiB.
const maxResult = 4 << 10

// end tells everybody how it went.
func (x *exchange) end(u usage, err error) {
	computed := err == nil || x.reached(u, err)
	x.turn.Done(conversation.Outcome{Gone: !computed, Prompt: u.whole(), Cached: u.cached, Output: u.output})
	for _, pl := range x.turn.Plans {
		if computed && !x.result.Shadow && x.p.trust.answered(pl.Expected, u.cached) {
			x.p.opt.Log.Warn("the engine does not hold what it held before the restart: the index begins anew", "model", x.model)
			if x.p.opt.Journal != nil {
				x.p.opt.Journal.Cleared(nil)
			}
			for _, scope := range x.p.opt.Pilot.Scopes() {
				x.p.opt.Pilot.Observe(contextpilot.Event{Kind: contextpilot.Cleared, Scope: scope})
			}
		}
	}
	if x.followed != nil {
		x.followed.Ended(computed)
	}
	if x.p.opt.Provider != nil && computed {
		x.tellCache(u, nil)
	}
	span := x.p.opt.Tracer.Current(x.r.Context())
	if x.p.opt.Recorder == nil && !span.Recorded() {
		return
	}
	report := x.report(u, err)
	describe(span, &report, u.output)
	if x.p.opt.Recorder != nil {
		x.p.opt.Recorder.Answered(report)
	}
}

// reached reports whether a request that has failed reached the engine, as far as anybody knows: its answer broke off when it
// had begun, since an engine has computed the prompt by then, or had said what it used. A cloud provider must have said that,
// and what it refuses it does not keep.
func (x *exchange) reached(u usage, err error) bool {
	if x.p.opt.Provider != nil {
		return u != unknown && !errors.Is(err, errStatus)
	}
	return u != unknown || x.begun
}

func (x *exchange) report(u usage, err error) Report {
	r := Report{
		ID: x.id, At: x.began, Tenant: x.tenant, Path: x.r.URL.Path, Session: x.session, Model: x.model,
		Planned: !x.control.off && x.plans(), HeldOut: x.heldOut, Carried: x.carried, Scope: x.turn.Scope, Share: x.share, Shadow: x.result.Shadow, Failed: err != nil,
		TTFT: x.first, Planning: x.sent.Sub(x.began), Total: x.p.opt.Now().Sub(x.began),
		Prompt: u.whole(), Cached: u.cached, Predicted: -1, Usage: u.counts(),
		Documents: x.turn.Found, LeftOut: x.result.Deduplicated, Replaced: x.turn.Replaced, CharsSaved: x.result.CharsSaved,
	}
	if r.ID == "" {
		r.ID = newID()
	}
	for _, pl := range x.turn.Plans {
		r.Predicted = max(r.Predicted, 0) + pl.Expected
	}
	for _, d := range x.result.Details {
		if d.Reordered != nil {
			r.Orders = append(r.Orders, Order{Where: d.Source, Sent: d.Reordered})
		}
	}
	if x.p.opt.KeepTexts {
		r.Before, r.After = x.raw, x.send
		if x.would != nil {
			r.After = x.would
		}
	}
	return r
}

// watch puts a watcher on an answer. before is called in time for headers with the usage of a short JSON answer, which is read to its
// end for that; a stream is not waited for.
func (p *Proxy) watch(resp *http.Response, began time.Time, first func(time.Duration), before func(usage), done func(usage, error)) error {
	early := func() { first(p.opt.Now().Sub(began)) }
	if before != nil && resp.ContentLength <= shortAnswer && (resp.ContentLength >= 0 || isJSON(resp.Header)) && !isStream(resp.Header) {
		text, err := io.ReadAll(io.LimitReader(resp.Body, shortAnswer+1))
		if len(text) <= shortAnswer {
			resp.Body.Close()
		}
		if err != nil {
			return err
		}
		early()
		early = nil
		if len(text) <= shortAnswer {
			before(readUsage(text, bytes.LastIndex(text, usageKey)))
			resp.Body = io.NopCloser(bytes.NewReader(text))
		} else {
			resp.Body = &resumed{io.MultiReader(bytes.NewReader(text), resp.Body), resp.Body}
		}
	}
	resp.Body = &watcher{ReadCloser: resp.Body, first: early, done: done}
	return nil
}

// resumed is an answer whose beginning was read.
type resumed struct {
	io.Reader
	io.Closer
}

// shortAnswer is the length in bytes up to which a JSON answer, which is of no use before it is complete, may wait for its last byte.
const shortAnswer = 4 << 20

func isJSON(h http.Header) bool {
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.TrimSpace(strings.ToLower(kind)) == "application/json"
}

func isStream(h http.Header) bool {
	return strings.HasPrefix(h.Get("Content-Type"), "text/event-stream")
}
