package cloudcache

import (
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/internal/queue"
)

// held knows for how long what prompts carry is believed to be in the provider's cache. Unlike a table's entries it is
// about prompts of which nobody said how much was written, too. Safe for concurrent use.
type held struct {
	limit int

	mu    sync.Mutex // guards all below
	at    map[key]*tie
	soon  *queue.Queue[*tie] // the same, the one that ends first on top
	ended []string
}

// tie is a prompt that carries something.
type tie struct {
	key   key
	names []string
	upTo  int // tokens from the start of the prompt that were kept, at least
	ttl   time.Duration
	ends  time.Time
	place int
}

func newHeld(limit int) *held {
	soon := queue.New(func(a, b *tie) bool { return a.ends.Before(b.ends) }, func(t *tie) *int { return &t.place })
	return &held{limit: limit, at: map[key]*tie{}, soon: soon}
}

// Carrying returns the handle of a prompt whose beginning carries what these names stand for. [Provider.Ended] returns
// the names when the provider does not hold it any more. The names are kept.
func (h Handle) Carrying(names ...string) Handle {
	h.names = names
	return h
}

// Ended returns, each once, the names of what the provider does not hold any more, or never did: its prompt was not read
// again within its time to live, was not cached at all, or was sent again with other names. A name in a prompt that
// has not been answered is not among them. O(those that ended).
func (p *Provider) Ended() []string { return p.held.sweep(p.now()) }

// anything stands for an unknown number of tokens.
const anything = -1

// answered takes in that so many tokens of a prompt are in the cache now.
func (x *held) answered(h Handle, tokens int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(h.prefixes) == 0 || tokens == 0 {
		x.ended = append(x.ended, h.names...)
		return
	}
	for _, sum := range h.prefixes {
		if t := x.at[key{h.tenant, sum}]; t != nil && (tokens == anything || t.upTo <= tokens+rounding) {
			x.refresh(t, h.at)
		}
	}
	if len(h.names) == 0 {
		return
	}
	own := key{h.tenant, h.prefixes[len(h.prefixes)-1]}
	t := x.at[own]
	if t == nil {
		for x.soon.Len() >= x.limit {
			x.end(x.soon.Top())
		}
		t = &tie{key: own, ends: h.at.Add(h.ttl)}
		x.at[own] = t
		x.soon.Push(t)
	}
	x.ended = append(x.ended, t.names...) // what they carry is what the new names do
	t.names, t.upTo, t.ttl = h.names, max(tokens, 0), h.ttl
	x.refresh(t, h.at)
}

func (x *held) refresh(t *tie, at time.Time) {
	if ends := at.Add(t.ttl); ends.After(t.ends) {
		t.ends = ends
		x.soon.Moved(t)
	}
}

func (x *held) end(t *tie) {
	x.soon.Remove(t)
	delete(x.at, t.key)
	x.ended = append(x.ended, t.names...)
}

func (x *held) sweep(now time.Time) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	for x.soon.Len() > 0 && !x.soon.Top().ends.After(now) {
		x.end(x.soon.Top())
	}
	out := x.ended
	x.ended = nil
	return out
}
