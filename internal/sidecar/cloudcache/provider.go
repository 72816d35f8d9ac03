package cloudcache

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Provider is a cloud API with a prompt cache. Safe for concurrent use.
type Provider struct {
	name     string
	protocol protocol
	base     *url.URL
	key      string
	vendor   string // the built-in provider that it is or is like

	extended bool // longer entries are asked for and exist
	cacheKey bool
	ttl      time.Duration // of entries nothing longer was asked for
	long     time.Duration // of the others
	rates    Rates
	currency string
	now      func() time.Time
	cache    *table
	held     *held
}

// New returns a Provider. An error names the field and its value.
func New(o Options) (*Provider, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	p := &Provider{name: o.Provider, key: o.Key, cacheKey: o.CacheKey, vendor: o.Provider, currency: o.Currency, now: o.Now}
	if o.Like != "" {
		p.vendor = o.Like
	}
	v, _ := vendorOf(p.vendor)
	p.protocol, p.ttl, p.long = v.protocol, v.ttl, v.long
	p.extended = o.Extended && v.long > 0
	if o.TTL > 0 {
		p.ttl = o.TTL
	}
	p.base = o.Base
	if p.base == nil {
		p.base, _ = url.Parse(v.base) // a constant
	} else {
		p.base = p.Base() // the caller keeps its own
	}
	if p.now == nil {
		p.now = time.Now
	}
	p.rates = ratesOf(o.Prices, v.ratio)
	limit := o.MaxEntries
	if limit == 0 {
		limit = DefaultMaxEntries
	}
	p.cache, p.held = newTable(limit), newHeld(limit)
	return p, nil
}

// Name returns the provider's name.
func (p *Provider) Name() string { return p.name }

// Base returns a copy of the provider's address; the paths of requests are appended to its path.
func (p *Provider) Base() *url.URL {
	u := *p.base
	return &u
}

// Headers returns what replaces the client's headers, for the caller to keep. A nil value removes the client's, so
// that its keys for another API do not leave the house. Empty without a key.
func (p *Provider) Headers() http.Header {
	h := http.Header{}
	if p.key == "" {
		return h
	}
	switch p.vendor {
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
