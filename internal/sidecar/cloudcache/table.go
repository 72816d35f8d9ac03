package cloudcache

import (
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/internal/lru"
	"github.com/ragpilot/ragpilot/internal/queue"
)

// table holds the entries that the provider is believed to hold. Safe for concurrent use.
type table struct {
	limit int

	mu      sync.Mutex // guards all below
	at      map[key]*entry
	soon    *queue.Queue[*entry] // the same entries, the one that ends first on top
	tenants *lru.Cache[string, *state]
	all     state
}

// state is what is counted of a tenant, or of all.
type state struct {
	name string
	Counts
	book book
}

// maxTenants is how many tenants have counts of their own.
const maxTenants = 1024

type key struct {
	tenant string
	prefix xxh3.Uint128
}

// entry is a prefix in the cache. Its tokens are those that a shorter entry did not hold when it was written.
type entry struct {
	key    key
	tokens int
	upTo   int // tokens from the start of the prompt
	ttl    time.Duration
	ends   time.Time
	place  int // in the queue
	state  *state
}

func newTable(limit int) *table {
	soon := queue.New(func(a, b *entry) bool { return a.ends.Before(b.ends) }, func(e *entry) *int { return &e.place })
	return &table{limit: limit, at: map[key]*entry{}, soon: soon, tenants: lru.New[string, *state](maxTenants)}
}

// rounding is by how many tokens less than an entry holds a provider may report as read: OpenAI counts in steps of 128.
const rounding = 127

// answered counts an answer for which the provider read and wrote so many tokens.
func (t *table) answered(h Handle, read, written int, x posting, now time.Time) Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep(now)
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
	own := key{h.tenant, h.prefixes[len(h.prefixes)-1]}
	for _, sum := range h.prefixes {
		e := t.at[key{h.tenant, sum}]
		switch {
		case e == nil:
		case e.upTo <= read+rounding && read > 0:
			t.refresh(e, h.at)
		case written > 0 && e.key != own: // it was not found any more, and its tokens are written anew
			t.evict(e)
		}
	}
	if written > 0 {
		t.put(own, read+written, written, h, now, c)
	}
	return c.Counts
}

// put adds an entry, or writes it again. Its time runs from when the request was sent: a long answer may outlive it.
func (t *table) put(k key, upTo, tokens int, h Handle, now time.Time, c *state) {
	if e := t.at[k]; e != nil {
		t.add(e, tokens-e.tokens)
		e.tokens, e.upTo, e.ttl = tokens, upTo, h.ttl
		t.refresh(e, h.at)
		return
	}
	e := &entry{key: k, tokens: tokens, upTo: upTo, ttl: h.ttl, ends: h.at.Add(h.ttl), state: c}
	if !e.ends.After(now) {
		return
	}
	for t.soon.Len() >= t.limit {
		t.evict(t.soon.Top())
	}
	t.at[k] = e
	t.soon.Push(e)
	for _, c := range []*state{c, &t.all} {
		c.ActiveEntries++
		c.Additions++
	}
	t.add(e, tokens)
}

func (t *table) add(e *entry, tokens int) {
	e.state.CachedTokens += tokens
	t.all.CachedTokens += tokens
}

func (t *table) refresh(e *entry, at time.Time) {
	if ends := at.Add(e.ttl); ends.After(e.ends) {
		e.ends = ends
		t.soon.Moved(e)
	}
}

func (t *table) evict(e *entry) {
	t.soon.Remove(e)
	delete(t.at, e.key)
	for _, c := range []*state{e.state, &t.all} {
		c.ActiveEntries--
		c.Evictions++
	}
	t.add(e, -e.tokens)
}

// sweep removes what has ended.
func (t *table) sweep(now time.Time) {
	for t.soon.Len() > 0 && !t.soon.Top().ends.After(now) {
		t.evict(t.soon.Top())
	}
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
	t.sweep(now)
	if known, ok := t.tenants.Get(tenant); ok {
		return known.Counts, known.book
	}
	return Counts{}, book{}
}

func (t *table) total(now time.Time) (Counts, book) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep(now)
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
