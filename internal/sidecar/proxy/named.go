package proxy

import (
	"net/http"
	"strings"
)

// idHeader names a request to its engine. vLLM prefers it to what the body says.
const idHeader = "X-Request-Id"

// clientID is the ID that the client has put into the header, "" if there is none that could stand in reports.
func clientID(r *http.Request) string {
	id := r.Header.Get(idHeader)
	if len(id) > maxName || strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return ""
	}
	return id
}

// withID adds to the headers that go upstream the ID under which a request is known here, "" for none. An engine reports
// evictions by it.
func withID(h http.Header, id string) http.Header {
	if id == "" {
		return h
	}
	if h = h.Clone(); h == nil {
		h = http.Header{}
	}
	h.Set(idHeader, id)
	return h
}

// told reports whether the engine is told the ID of the first prompt that is planned in the request: not where nothing of it would come
// back, and not where the request passes as it came.
func (x *exchange) told() bool { return x.p.opt.Provider == nil && !x.asCame && x.dialect != responses }

// engineID is the ID that the engine is told by the header: that of the first prompt that was planned in the request, or the request's
// own where the client's header names another. "": none.
func (x *exchange) engineID() string {
	switch {
	case !x.told():
	case len(x.turn.Plans) > 0:
		return x.turn.Plans[0].ID
	case x.r.Header.Get(idHeader) != "":
		return x.id
	}
	return ""
}

// promptID is the ID for the first prompt that is planned: the request's own, or the client's, where that is free. "": none of them.
func (x *exchange) promptID() string {
	if x.id != "" {
		return x.id
	}
	id := clientID(x.r)
	if id == "" || x.p.engine.Knows(x.tenant, id) {
		return "" // the client has sent it before
	}
	return id
}
