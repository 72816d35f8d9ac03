package cloudcache

import (
	"fmt"
	"math"
	"time"
)

// Usage is what an answer reports, in tokens; -1: nothing was said.
type Usage struct {
	// Prompt is input_tokens or prompt_tokens as the provider counts them: OpenAI's contain those read and written,
	// Anthropic's and MiniMax's do not.
	Prompt int
	Read   int // from the cache
	// Written is what the provider says it wrote to its cache. Older models of OpenAI write without saying so: -1.
	Written int
	// Written1h is the part of Written that stays for an hour. 0 or less: nothing was said, and with Extended it is all.
	Written1h int
	Output    int
}

// Result is what the cache did for one request. As JSON it is the value of X-ContextPilot-Cloud-Cache.
type Result struct {
	Provider string `json:"provider"`
	// Written is cache_creation_tokens: as reported, and for OpenAI, if nothing was reported, the prompt without what
	// was read, or 0 if nothing was read. Unknown: 0.
	Written int `json:"cache_creation_tokens"`
	// Read is cache_read_tokens. Unknown: 0.
	Read  int    `json:"cache_read_tokens"`
	Cache Counts `json:"ttl_stats"` // of the tenant, after this request
}

// Counts are what a tenant has, or all have, in the provider's cache, as far as is known here.
type Counts struct {
	// Entries that have not ended. Those that have are removed at once, so that the two numbers are the same.
	ActiveEntries int `json:"active_entries"`
	TotalEntries  int `json:"total_entries"`
	// CachedTokens are those in the entries, each counted once although the entries of a conversation share prefixes.
	CachedTokens int `json:"total_cached_tokens"`
	Hits         int `json:"total_hits"`      // answers that read from the cache
	Misses       int `json:"total_misses"`    // answers that read nothing, although there was something to cache
	Evictions    int `json:"total_evictions"` // entries that ended: not read in time, lost by the provider, or too many
	Additions    int `json:"total_additions"` // new entries; one that is written again is not new
	// HitRate is the percentage of hits among hits and misses, with two decimals; 0 if there were none.
	HitRate float64 `json:"hit_rate_pct"`

	DefaultTTL        string `json:"default_ttl"` // such as 5m, 1h, 24h
	DefaultTTLSeconds int    `json:"default_ttl_seconds"`
}

// Stats are Counts with the provider's name and an account. As JSON they are the body of GET /cloud/stats.
type Stats struct {
	Counts
	Provider string  `json:"provider"`
	Account  Account `json:"account"`
}

// Answered counts a complete answer and returns what the client gets to see. An answer that is no success, or was broken
// off before its usage was known, needs no call.
func (p *Provider) Answered(h Handle, u Usage) Result {
	read, written := max(u.Read, 0), max(u.Written, 0)
	kept := written // the tokens that are in the cache behind those read
	if p.protocol == openAI && u.Written < 0 && u.Read >= 0 {
		switch {
		case read > 0:
			written = max(u.Prompt-read, 0)
			kept = written
		case u.Prompt >= minOpenAI:
			kept = u.Prompt
		}
	}
	if u.Read < 0 && u.Written < 0 {
		p.held.answered(h, anything)
	} else {
		p.held.answered(h, read+kept)
	}
	counts := p.cache.answered(h, read, kept, p.posting(h.model, u), p.now())
	return Result{Provider: p.name, Written: written, Read: read, Cache: p.times(counts)}
}

// minOpenAI is the length of a prompt, in tokens, from which OpenAI caches.
const minOpenAI = 1024

// Stats returns a tenant's counts and account; those of the 1,024 tenants that were served last are known.
func (p *Provider) Stats(tenant string) Stats {
	counts, b := p.cache.counts(tenant, p.now())
	return Stats{p.times(counts), p.name, p.account(b)}
}

// Total returns the counts and the account of all tenants together.
func (p *Provider) Total() Stats {
	counts, b := p.cache.total(p.now())
	return Stats{p.times(counts), p.name, p.account(b)}
}

func (p *Provider) times(c Counts) Counts {
	c.TotalEntries = c.ActiveEntries
	ttl := p.lifetime()
	c.DefaultTTLSeconds = int(ttl / time.Second)
	c.DefaultTTL = fmt.Sprintf("%dm", ttl/time.Minute)
	if ttl%time.Hour == 0 {
		c.DefaultTTL = fmt.Sprintf("%dh", ttl/time.Hour)
	}
	if n := c.Hits + c.Misses; n > 0 {
		c.HitRate = math.Round(10000*float64(c.Hits)/float64(n)) / 100
	}
	return c
}
