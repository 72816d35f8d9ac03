package cloudcache

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Provider is a cloud API with a prompt cache. Safe for concurrent use.
type Provider struct {
	name string
	vendor
	at       *url.URL
	key      string
	extended bool // longer entries are asked for and exist
	rates    Rates
	currency string
	now      func() time.Time
	cache    *table
	held     *held
}

// New returns a Provider.
func New(o Options) (*Provider, error) {
	v, ok := vendors[o.Provider]
	switch {
	case !ok:
		return nil, fmt.Errorf("provider %q: want anthropic, openai or minimax", o.Provider)
	case o.Base != nil && o.Base.User != nil:
		return nil, fmt.Errorf("base %q: must not carry a password", o.Base.Redacted())
	}
	limit := cmp.Or(o.MaxEntries, DefaultMaxEntries)
	p := &Provider{
		name: o.Provider, vendor: v, key: o.Key, extended: o.Extended && v.long > 0, now: o.Now,
		rates: newRates(o.Prices, v.ratio), currency: o.Currency,
		cache: newTable(limit), held: newHeld(limit),
	}
	if p.at, _ = url.Parse(v.base); o.Base != nil { // a constant
		u := *o.Base // the caller keeps its own
		p.at = &u
	}
	if p.now == nil {
		p.now = time.Now
	}
	return p, nil
}

// Name returns the provider's name.
func (p *Provider) Name() string { return p.name }

// Base returns a copy of the provider's address; the paths of requests are appended to its path.
func (p *Provider) Base() *url.URL {
	u := *p.at
	return &u
}

// Headers returns what replaces the client's headers, for the caller to keep. A nil value removes the client's, so
// that the provider does not get its keys for another API. Empty without a key.
func (p *Provider) Headers() http.Header {
	h := http.Header{}
	if p.key == "" {
		return h
	}
	switch p.name {
	case "openai":
		h.Set("Authorization", "Bearer "+p.key)
		h["X-Api-Key"] = nil
		h["Openai-Organization"], h["Openai-Project"] = nil, nil // they belong to the client's key
	case "anthropic":
		h.Set("Anthropic-Version", "2023-06-01")
		fallthrough
	default:
		h.Set("X-Api-Key", p.key)
		h["Authorization"] = nil
	}
	h["Cookie"] = nil // it is the client's with us
	h["Api-Key"] = nil
	return h
}

// lifetime is how long an entry stays that was asked for as this provider asks.
func (p *Provider) lifetime() time.Duration {
	if p.extended {
		return p.long
	}
	return p.ttl
}

// serves reports whether requests to a path carry prompts that are cached.
func (p *Provider) serves(path string) bool {
	path = strings.TrimSuffix(path, "/")
	if p.protocol == messages {
		return strings.HasSuffix(path, "/messages")
	}
	return strings.HasSuffix(path, "/chat/completions") || strings.HasSuffix(path, "/responses")
}
