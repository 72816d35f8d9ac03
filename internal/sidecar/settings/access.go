package settings

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// checkOpen refuses an address that other machines can reach while every client may ask.
func (p *problems) checkOpen(c Config) {
	if c.closed() || loopback(c.Listen) {
		return
	}
	const mend = "set keys, or listen on 127.0.0.1"
	switch field := c.credential(); {
	case field != "":
		p.add("listen", c.Listen, "can be reached from other machines without a key, and "+field+" would serve all of them: "+mend)
	case !c.AllowAnonymous:
		p.add("listen", c.Listen, "can be reached from other machines without a key: "+mend+", or set allow_anonymous")
	}
}

// closed reports whether clients must show who they are.
func (c Config) closed() bool { return len(c.Keys) > 0 || c.TLS.ClientCA != "" }

// credential names the setting by which requests are sent on with a key of the server's own; "" if none is.
func (c Config) credential() string {
	u, err := url.Parse(c.InferAPIURL)
	engine := c.CloudProvider == "" || c.Memory.asks() // is asked
	switch {
	case c.CloudProvider != "" && given(c.CloudAPIKey, c.CloudAPIKeyFile):
		return "cloud_api_key"
	case engine && given(c.InferAPIKey, c.InferAPIKeyFile):
		return "infer_api_key"
	case engine && err == nil && u.User != nil:
		return "the password in infer_api_url"
	}
	return ""
}

// checkAccess checks the lists of names, origins and paths.
func (p *problems) checkAccess(c Config) {
	for field, names := range map[string][]string{"admin_hosts": c.AdminHosts, "allowed_hosts": c.AllowedHosts} {
		for i, name := range names {
			if _, _, err := net.SplitHostPort(name); name == "" || err == nil || strings.ContainsAny(name, "/*@[] ") {
				p.add(fmt.Sprintf("%s[%d]", field, i), name, "want the name of a host, without port")
			}
		}
	}
	for i, origin := range c.AllowedOrigins {
		u, err := url.Parse(origin)
		if origin != "*" && (err != nil || u.Scheme == "" || u.Host == "" || u.User != nil || u.Scheme+"://"+u.Host != origin) {
			p.add(fmt.Sprintf("allowed_origins[%d]", i), redacted(origin), `want scheme://host or scheme://host:port, or "*"`)
		}
	}
	for i, entry := range c.AllowedPaths {
		if err := checkAllowed(entry); err != "" {
			p.add(fmt.Sprintf("allowed_paths[%d]", i), entry, err)
		}
	}
}

// checkAllowed says what is wrong with an entry of allowed_paths, "" if nothing is.
func checkAllowed(entry string) string {
	method, path, ok := strings.Cut(entry, " ")
	methods := []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	switch {
	case !ok || !slices.Contains(methods, method):
		return fmt.Sprintf("want a method, one of %v, and a path", methods)
	case !strings.HasPrefix(path, "/v1/") || strings.ContainsAny(path, `?#%\ {}`) || strings.Contains(path, "//") ||
		strings.Contains(path, "/.") || strings.HasSuffix(path, "/"):
		return "want a path that begins with /v1/"
	case strings.Contains(strings.TrimSuffix(path, "/*"), "*"):
		return "want * only as the last segment"
	}
	return ""
}

// checkBase checks an address to which paths that begin with /v1/ are appended.
func (p *problems) checkBase(field, value string) {
	p.checkURL(field, value)
	if u, err := url.Parse(value); err == nil && strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/v1") {
		p.add(field, redacted(value), "must not end in /v1: requests bring it with them")
	}
}

// validPort reports whether a URL's port can be one; "" is the scheme's own.
func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
