package server

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// access says by which names the server may be asked, and which web pages may ask. It answers two attacks by a page in a user's
// browser: requests to another site (CSRF), and a name of the attacker's own that resolves to this server (DNS rebinding).
// See docs/threat-model.md.
type access struct {
	adminHosts, hosts []string // names that may stand in Host, beside IP addresses and localhost
	origins           []string // web pages that may ask the main listener; "*" for all
	anyHost           bool     // Host is not checked on the main listener: a page has no key, or no certificate for its name
}

func newAccess(c settings.Config) *access {
	return &access{
		adminHosts: c.AdminHosts, hosts: c.AllowedHosts, origins: c.AllowedOrigins,
		anyHost: len(c.Keys) > 0 || c.TLS.On(),
	}
}

// guarded refuses on the main listener what a web page of another site makes a browser send. It does not look at the
// Content-Type: programs post JSON under any.
func (s *Server) guarded(next handle) handle {
	return func(a *answer, r *http.Request) {
		now := s.access.Load()
		switch origin, listed := now.listed(r); {
		case !now.anyHost && !singleLabel(r.Host) && !knownHost(r.Host, now.hosts):
			refuseHost(a, r, "server", "allowed_hosts")
		case listed && preflight(r):
			allowOrigin(a.Header(), origin)
			allowRequest(a.Header(), r.Header)
			a.WriteHeader(http.StatusNoContent)
		case listed:
			a.origin = origin
			next(a, r)
		case foreign(r):
			refuse(a, http.StatusForbidden, "Requests of web pages of other sites are refused; allowed_origins names the sites that may ask")
		default:
			next(a, r)
		}
	}
}

// guardedAdmin does the same for the admin listener, which has no list of origins. Probes may ask by any name: they learn nothing.
func (s *Server) guardedAdmin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case isHealthPath(r.URL.Path):
			next.ServeHTTP(w, r)
		case !knownHost(r.Host, s.access.Load().adminHosts):
			refuseHost(w, r, "listener", "admin_hosts")
		case foreign(r):
			refuse(w, http.StatusForbidden, "Requests of web pages of other sites are refused")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func refuseHost(w http.ResponseWriter, r *http.Request, what, setting string) {
	refuse(w, http.StatusForbidden,
		"Host "+shown(r.Host)+" is not a name of this "+what+": ask by IP address or localhost, or add the name to "+setting)
}

// listsFold reports whether a list has a text, in upper or lower case.
func listsFold(list []string, text string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(s, text) })
}

// knownHost reports whether a Host header has an IP address, localhost, or one of the names.
func knownHost(header string, names []string) bool {
	host := hostOf(header)
	return host == "localhost" || net.ParseIP(host) != nil || listsFold(names, host)
}

// singleLabel reports whether a Host header is one label, such as the service name in a network of containers. No public name is.
func singleLabel(header string) bool {
	host := hostOf(header)
	return host != "" && !strings.ContainsFunc(host, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_'
	}) && strings.ContainsFunc(host, func(c rune) bool { return c >= 'a' && c <= 'z' }) && !strings.HasPrefix(host, "0x")
}

// hostOf returns the host of a Host header in lower case, without port and brackets.
func hostOf(header string) string {
	if host, _, err := net.SplitHostPort(header); err == nil {
		return strings.ToLower(host)
	}
	return strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(header, "["), "]"))
}

// foreign reports whether the browser says that a page of another site is asking. Programs send none of these headers.
func foreign(r *http.Request) bool {
	for _, origin := range r.Header["Origin"] {
		if !sameOrigin(origin, r) {
			return true
		}
	}
	for _, site := range r.Header["Sec-Fetch-Site"] {
		if site != "same-origin" && site != "none" { // "same-site" is another port of this machine, too
			return true
		}
	}
	return len(r.Header["Origin"]) > 1
}

// sameOrigin reports whether an origin is this server's, as the client knows it. A proxy may have ended TLS in front.
func sameOrigin(origin string, r *http.Request) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != origin || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	port := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	return strings.EqualFold(strings.TrimSuffix(u.Host, port), strings.TrimSuffix(r.Host, port))
}

// listed returns the origin of a request if it is one that the settings name.
func (a *access) listed(r *http.Request) (origin string, ok bool) {
	if origins := r.Header["Origin"]; len(origins) == 1 {
		origin = origins[0]
	}
	if origin == "" {
		return "", false
	}
	return origin, slices.Contains(a.origins, "*") || listsFold(a.origins, origin)
}

// preflight reports whether a browser asks whether it may send a request (CORS).
func preflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}

// allowOrigin lets a page of an origin read the answer. It replaces what an engine says, which does not know our settings.
func allowOrigin(h http.Header, origin string) {
	h.Set("Access-Control-Allow-Origin", origin)
	h.Del("Access-Control-Allow-Credentials")
	if !slices.Contains(h.Values("Vary"), "Origin") {
		h.Add("Vary", "Origin")
	}
}

// allowRequest answers a preflight request.
func allowRequest(h, asked http.Header) {
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
	if names := asked.Get("Access-Control-Request-Headers"); names != "" {
		h.Set("Access-Control-Allow-Headers", names)
	}
	h.Set("Access-Control-Max-Age", "600")
}

// shown bounds and quotes what a client has sent, for an error.
func shown(text string) string {
	const most = 100
	if len(text) > most {
		text = text[:most] + "…"
	}
	return `"` + strings.Map(func(c rune) rune {
		if c < ' ' || c == '"' || c > '~' && c != '…' {
			return '?'
		}
		return c
	}, text) + `"`
}
