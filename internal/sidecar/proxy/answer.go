package proxy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation"
)

var (
	errStatus      = errors.New("the upstream answered with an error")
	errUnreachable = errors.New("the upstream could not be reached")
)

// forward sends the request and reports when its answer has ended. failed is what an unreachable upstream is called in the error.
// headers sets the answer's; what it returns is called with the usage of a short answer, if that is known in time for further
// headers.
func (x *exchange) forward(failed string, headers func(*http.Response) (early func(usage))) {
	if x.p.opt.Diagnosis != nil {
		x.sentAt = x.p.opt.Now()
	}
	x.p.forward(x.w, x.r, outgoing{
		base: x.p.opt.Upstream, body: x.send, header: x.headers(), failed: failed, fresh: x.pass.Held(),
		answer: func(resp *http.Response) error {
			x.diagnose(resp.StatusCode, resp.Header)
			if !x.p.opt.KeepTexts {
				x.raw, x.send, x.body = nil, nil, nil // they were sent, and the answer may take minutes
			}
			early := headers(resp)
			if x.followed != nil {
				x.followed.Answer(resp)
			}
			return x.watch(resp, early)
		},
	})
	x.end(unknown, errUnreachable)
}

// headers are those that go upstream instead of the client's.
func (x *exchange) headers() http.Header {
	h := x.header
	if h == nil {
		h = x.p.credentials(x.r)
	}
	return withID(h, x.engineID())
}

// watch has the first byte and the end of an answer noted. early is called with the usage of a short JSON answer, which is read to
// its end for that; a stream is not waited for.
func (x *exchange) watch(resp *http.Response, early func(usage)) error {
	ok := resp.StatusCode < 300
	stream := isStream(resp.Header)
	w := &watcher{first: func() {
		x.start(ok)
		if ok && stream { // other answers come in one piece, at their end
			x.pass.First()
		}
	}, done: func(u usage, err error) {
		if err == nil && !ok {
			err = errStatus
		}
		x.end(u, err)
	}}
	if x.asks && x.diagnosed != nil {
		if x.reasons = newReasons(x.dialect, stream); x.reasons != nil {
			w.also = x.reasons
		}
	}
	if early != nil && resp.ContentLength <= shortAnswer && (resp.ContentLength >= 0 || isJSON(resp.Header)) && !isStream(resp.Header) {
		text, err := io.ReadAll(io.LimitReader(resp.Body, shortAnswer+1))
		if len(text) <= shortAnswer {
			resp.Body.Close()
		}
		if err != nil {
			return err
		}
		x.start(ok)
		w.first = nil
		if len(text) <= shortAnswer {
			early(readUsage(text, bytes.LastIndex(text, usageKey)))
			resp.Body = io.NopCloser(bytes.NewReader(text))
		} else {
			resp.Body = &resumed{io.MultiReader(bytes.NewReader(text), resp.Body), resp.Body}
		}
	}
	w.ReadCloser = resp.Body
	resp.Body = w
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

// start notes the answer's first byte. The time to it is also known of streams that break off, and of those that still run.
func (x *exchange) start(ok bool) {
	x.first, x.begun = x.p.opt.Now().Sub(x.began), ok
	if x.p.opt.Index == nil || x.dialect != openAI && x.dialect != anthropic || !ok {
		return
	}
	saved := x.result.CharsSaved
	if x.mode.shadow() {
		saved = 0
	}
	x.p.opt.Index.RecordTTFT(x.tenant, x.first, saved)
}

// settle accounts for an answer in the provider's cache, and sets the client's header, if the headers are not sent yet.
func (x *exchange) settle(u usage, h http.Header) {
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

// setResult sets the response header that says what was done.
func (x *exchange) setResult(h http.Header) {
	if !x.rewritten {
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

// maxResult is the length in bytes up to which the result header has details. Many clients and proxies refuse answers
// with headers of more than 8 KiB.
const maxResult = 4 << 10

// end reports how it went, once.
func (x *exchange) end(u usage, err error) {
	if x.ended {
		return
	}
	x.ended = true
	computed := err == nil || x.reached(u, err)
	x.pass.Done(computed, u.cached)
	x.turn.Done(conversation.Outcome{Gone: !computed, Prompt: u.whole(), Cached: u.cached, Output: u.output})
	for _, pl := range x.turn.Plans {
		if computed && !x.mode.shadow() && x.p.trust.answered(pl.Expected, u.cached) {
			x.p.distrust(x.model)
		}
	}
	if x.followed != nil {
		x.followed.Ended(computed)
	}
	if x.p.opt.Provider != nil && computed {
		x.settle(u, nil)
	}
	x.endDiagnosis(u, err, computed)
	span := x.p.opt.Tracer.Current(x.r.Context())
	if x.p.opt.Recorder == nil && !span.Recorded() {
		return
	}
	report := x.report(u, err)
	x.p.describe(span, &report, u.output)
	if x.p.opt.Recorder != nil {
		x.p.opt.Recorder.Answered(report)
	}
}

// reached reports whether a request that has failed reached the engine, as far as is known: its answer broke off when it
// had begun, since an engine has computed the prompt by then, or had said what it used. A cloud provider must have said that,
// and what it refuses it does not keep. Plain completions that fail count as not computed.
func (x *exchange) reached(u usage, err error) bool {
	switch {
	case x.dialect == completion:
		return false
	case x.p.opt.Provider != nil:
		return u != unknown && !errors.Is(err, errStatus)
	}
	return u != unknown || x.begun
}

// reportID is the ID of the report: that under which the engine knows the request, or a new one.
func (x *exchange) reportID() string {
	if x.reported == "" {
		x.reported = cmp.Or(x.id, newID())
	}
	return x.reported
}

func (x *exchange) report(u usage, err error) Report {
	session := x.control.session
	if session == "" {
		session = x.p.shown(x.session)
	}
	r := Report{
		ID: x.reportID(), At: x.began, Tenant: x.tenant, Path: x.r.URL.Path, Session: session, Model: x.model,
		Planned: x.mode.planned(), HeldOut: x.mode.heldOut(), Carried: x.mode.carried(), Scope: x.turn.Scope, Share: x.share,
		Shadow: x.mode.shadow(), Failed: err != nil,
		TTFT: x.first, Planning: x.ready.Sub(x.began), Total: x.p.opt.Now().Sub(x.began),
		Prompt: u.whole(), Cached: u.cached, Predicted: -1, Usage: u.counts(),
		Documents: x.turn.Found, LeftOut: x.result.Deduplicated, Replaced: x.turn.Replaced, CharsSaved: x.result.CharsSaved,
	}
	if x.mode.planned() {
		r.Stabilised = x.stabilised.Done
	}
	for _, pl := range x.turn.Plans {
		r.Predicted = max(r.Predicted, 0) + pl.Expected
	}
	for _, d := range x.result.Details {
		if d.Reordered != nil {
			r.Orders = append(r.Orders, Order{Where: d.Source, Sent: d.Reordered})
		}
	}
	if x.p.opt.KeepTexts && x.dialect != completion {
		r.Before, r.After = x.raw, x.send
		if x.would != nil {
			r.After = x.would
		}
	}
	return r
}

const (
	// trustAnswers is how many answers an index from before a restart is tried on.
	trustAnswers = 20
	// trustTokens is the least expectation that counts: less is there by chance.
	trustTokens = 64
	// trustShare is the share of the expected tokens that must have been there. Tokens are estimated here and counted
	// there, and other clients evict; an engine that was restarted, too, has none.
	trustShare = 0.25
)

// trust finds out whether an index from before a restart is still true of the engine.
type trust struct {
	mu               sync.Mutex
	left             int
	expected, actual int
}

// answered takes one answer in, and reports whether it was the last one and too little was there: the index is not true then. An
// engine that lost its cache lost that of all scopes, and not only of those that happened to be asked for.
func (t *trust) answered(expected, actual int) (lost bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left == 0 || expected < trustTokens || actual < 0 {
		return false
	}
	t.left--
	t.expected += expected
	t.actual += actual
	return t.left == 0 && float64(t.actual) < trustShare*float64(t.expected)
}

// distrust clears the index, as the engine does not hold what it says.
func (p *Proxy) distrust(model string) {
	p.opt.Log.Warn("the engine does not hold what it held before the restart: the index begins anew", "model", model)
	if p.opt.Journal != nil {
		p.opt.Journal.Cleared(nil)
	}
	for _, scope := range p.opt.Pilot.Scopes() {
		p.opt.Pilot.Observe(contextpilot.Event{Kind: contextpilot.Cleared, Scope: scope})
	}
}
