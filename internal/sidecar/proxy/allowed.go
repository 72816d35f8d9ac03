package proxy

import (
	"net/http"
	"strings"
)

// allowed are the requests that are forwarded, beside those that are planned. What is not listed is not: an engine or a
// provider has more under /v1/ than prompts, and our key opens all of it. A last {rest...} stands for any path.
var allowed = []string{"GET /v1/models", "GET /v1/models/{rest...}", "POST /v1/embeddings", "POST /v1/rerank"}

// allowedOf are more of them, by provider; "" is an engine of one's own (vLLM, SGLang, llama.cpp).
var allowedOf = map[string][]string{
	"":       {"POST /v1/score", "POST /v1/reranking"},
	"openai": {"POST /v1/moderations"},
}

// storedObjects are paths of what an engine or provider keeps for the holder of a key.
var storedObjects = []string{
	"/v1/files", "/v1/uploads", "/v1/batches", "/v1/messages/batches", "/v1/chat/completions", "/v1/responses", "/v1/conversations",
	"/v1/vector_stores",
}

// route enters all routes into the mux.
func (p *Proxy) route() {
	provider := ""
	if p.opt.Provider != nil {
		provider = p.opt.Provider.Name()
	}
	routes := map[string]http.HandlerFunc{}
	for _, path := range storedObjects {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			routes[method+" "+path], routes[method+" "+path+"/{rest...}"] = p.stored, p.stored
		}
	}
	for _, list := range [][]string{allowed, allowedOf[provider], p.opt.AllowedPaths} {
		for _, entry := range list {
			if prefix, ok := strings.CutSuffix(entry, "/*"); ok {
				entry = prefix + "/{rest...}"
			}
			routes[entry] = p.pass
		}
	}
	routes["POST /v1/chat/completions"] = p.chat(openAI)
	routes["POST /v1/messages"] = p.chat(anthropic)
	routes["POST /v1/responses"] = p.chat(responses)
	routes["POST /v1/completions"] = p.completions
	routes["POST /v1/messages/count_tokens"] = p.count
	if provider == "openai" {
		routes["POST /v1/responses/input_tokens"] = p.count
	}
	routes["GET /cloud/stats"] = p.cloudStats
	routes["/v1/"] = p.refuse
	for pattern, serve := range routes {
		p.mux.HandleFunc(pattern, serve)
	}
}

// ServeHTTP answers one request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/") && r.URL.Path != "/v1/" { // it is the same request to most servers, and must be planned like it
		u := *r.URL
		u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
		clean := new(http.Request)
		*clean = *r
		clean.URL = &u
		r = clean
	}
	p.mux.ServeHTTP(w, r)
}

// refuse answers what is not forwarded.
func (p *Proxy) refuse(w http.ResponseWriter, r *http.Request) {
	var methods []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if _, pattern := p.mux.Handler(&http.Request{Method: method, URL: r.URL, Host: r.Host}); pattern != "/v1/" && pattern != "" {
			methods = append(methods, method)
		}
	}
	if len(methods) > 0 {
		w.Header().Set("Allow", strings.Join(methods, ", "))
		writeError(w, http.StatusMethodNotAllowed, "Method Not Allowed")
		return
	}
	writeError(w, http.StatusNotFound, "Not Found: this path is not forwarded; the setting allowed_paths adds paths")
}

// pass forwards a request as it is.
func (p *Proxy) pass(w http.ResponseWriter, r *http.Request) {
	p.forward(w, r, outgoing{base: p.opt.Upstream, header: p.credentials(r), failed: unreachableEngine})
}

const unreachableEngine = "Inference engine backend error"

// stored forwards a request for stored objects. With our key for the engine or provider all clients would share them, so the
// client's own key is sent, even where ours is sent otherwise. Without any key and without tenants there is
// nothing to keep apart.
func (p *Proxy) stored(w http.ResponseWriter, r *http.Request) {
	own := r.Header.Get("Authorization") != "" || r.Header.Get("X-Api-Key") != ""
	switch {
	case p.opt.StoredObjects, !own && !p.hasKey() && tenantOf(r) == "":
		p.pass(w, r)
	case own:
		out := outgoing{base: p.opt.Upstream, ownKey: true, failed: unreachableEngine}
		if p.opt.Provider != nil {
			out.header = http.Header{"Cookie": nil} // it is the client's with us
		}
		p.forward(w, r, out)
	default:
		writeError(w, http.StatusForbidden, sharedObjects)
	}
}

// hasKey reports whether requests are sent on with a key of this server.
func (p *Proxy) hasKey() bool {
	return p.auth != "" || p.opt.Provider != nil && len(p.opt.Provider.Headers()) > 0
}
