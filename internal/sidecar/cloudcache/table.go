package cloudcache

import (
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/internal/base/lru"
)

// table holds the entries that the provider is believed to hold. Safe for concurrent use.
type table struct {
	mu      sync.Mutex // guards all below
	entries entries[holding]
	tenants *lru.Cache[string, *state]
	all     state
}

// holding is what an entry holds: tokens that a shorter entry did not hold when it was written.
type holding struct {
	tokens int
	state  *state // the tenant's
}

// state is what is counted of a tenant, or of all.
type state struct {
	name string
	Counts
	book book
}

// maxTenants is how many tenants have counts of their own.
const maxTenants = 1024

func newTable(limit int) *table {
	t := &table{tenants: lru.New[string, *state](maxTenants)}
	t.entries = newEntries(limit, t.evicted)
	return t
}

// rounding is by how many tokens less than an entry holds a provider may report as read: OpenAI counts in steps of 128.
const rounding = 127

// answered counts an answer for which the provider read and wrote so many tokens.
func (t *table) answered(h Handle, read, written int, x book, now time.Time) Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries.sweep(now)
	c := t.of(h.tenant)
	c.book.add(x)
	t.all.book.add(x)
	switch {
	case read > 0:
		c.Hits++
		t.all.Hits++
	case written > 0:
		c.Misses++
		t.all.Misses++
	}
	if len(h.prefixes) == 0 {
		return c.Counts
	}
	own := h.own()
	for _, sum := range h.prefixes {
		e := t.entries.at[key{h.tenant, sum}]
		switch {
		case e == nil:
		case e.upTo <= read+rounding && read > 0:
			t.entries.refresh(e, h.at)
		case written > 0 && e.key != own: // it was not found any more, and its tokens are written anew
			t.entries.drop(e)
		}
	}
	if written > 0 {
		t.put(own, read+written, written, h, now, c)
	}
	return c.Counts
}

// put adds an entry, or writes it again. Its time runs from when the request was sent: a long answer may outlive it.
func (t *table) put(k key, upTo, tokens int, h Handle, now time.Time, c *state) {
	if e := t.entries.at[k]; e != nil {
		t.hold(e, tokens-e.value.tokens)
		e.value.tokens, e.upTo, e.ttl = tokens, upTo, h.ttl
		t.entries.refresh(e, h.at)
		return
	}
	e := &entry[holding]{key: k, value: holding{tokens, c}, upTo: upTo, ttl: h.ttl, ends: h.at.Add(h.ttl)}
	if !e.ends.After(now) {
		return
	}
	t.entries.add(e)
	for _, c := range []*state{c, &t.all} {
		c.ActiveEntries++
		c.Additions++
	}
	t.hold(e, tokens)
}

// hold counts tokens that an entry holds in addition.
func (t *table) hold(e *entry[holding], tokens int) {
	e.value.state.CachedTokens += tokens
	t.all.CachedTokens += tokens
}

// evicted counts an entry that has gone.
func (t *table) evicted(e *entry[holding]) {
	for _, c := range []*state{e.value.state, &t.all} {
		c.ActiveEntries--
		c.Evictions++
	}
	t.hold(e, -e.value.tokens)
}

// of returns what is counted of a tenant that is served.
func (t *table) of(tenant string) *state {
	c, ok := t.tenants.Get(tenant)
	if !ok {
		c = &state{name: tenant}
		t.tenants.Put(tenant, c)
	}
	return c
}

func (t *table) counts(tenant string, now time.Time) (Counts, book) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries.sweep(now)
	if known, ok := t.tenants.Get(tenant); ok {
		return known.Counts, known.book
	}
	return Counts{}, book{}
}

func (t *table) total(now time.Time) (Counts, book) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries.sweep(now)
	return t.all.Counts, t.all.book
}

// books returns copies of the tenants' states, the one that was served last first.
func (t *table) books() []state {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]state, 0, t.tenants.Len())
	for _, s := range t.tenants.All() {
		out = append(out, *s)
	}
	return out
}
