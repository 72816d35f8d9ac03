package proxy

import (
	"net/http"
	"strings"

	"github.com/ragpilot/ragpilot/engines/evict"
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

// engineID is the ID that the engine is told by the header: that of the first prompt that was planned in the request, or the request's
// own where the client's header names another. "" where nobody would understand what is reported by it, and where the request passes as
// it came.
func (x *exchange) engineID() string {
	switch {
	case x.p.opt.Provider != nil || x.asCame || x.dialect == responses:
	case len(x.planned) > 0:
		return x.planned[0].id
	case x.r.Header.Get(idHeader) != "":
		return x.id
	}
	return ""
}

// promptID is the ID of a prompt that is about to be planned: the request's own, or the client's, where these are free.
func (x *exchange) promptID() string {
	id := x.id
	if id == "" {
		id = clientID(x.r)
	}
	if id == "" || len(x.planned) > 0 {
		return newID()
	}
	if x.id == "" && x.p.knows(prompt{x.tenant, id}) {
		return newID() // the client has sent it before
	}
	return id
}

// knows reports whether a prompt was planned under that name, and is not known to have left the cache.
func (p *Proxy) knows(name prompt) bool {
	_, ok := p.scopeOf(name)
	return ok
}

// promptOf finds the planned prompt that an engine's name of it stands for.
func (p *Proxy) promptOf(tenant, id string) (name prompt, ok bool) {
	id, ok = evict.Match(id, func(id string) bool { return p.knows(prompt{tenant, id}) })
	return prompt{tenant, id}, ok
}
