package cloudcache

import "sync"

// held knows for how long what prompts carry is believed to be in the provider's cache. Unlike a table's entries it is also
// about prompts whose written tokens were not reported. Safe for concurrent use.
type held struct {
	mu      sync.Mutex        // guards all below
	prompts entries[[]string] // the names that they carry
	ended   []string
}

func newHeld(limit int) *held {
	x := &held{}
	x.prompts = newEntries(limit, func(e *entry[[]string]) { x.ended = append(x.ended, e.value...) })
	return x
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
func (p *Provider) Ended() []string {
	p.held.mu.Lock()
	defer p.held.mu.Unlock()
	p.held.prompts.sweep(p.now())
	out := p.held.ended
	p.held.ended = nil
	return out
}

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
		if e := x.prompts.at[key{h.tenant, sum}]; e != nil && (tokens == anything || e.upTo <= tokens+rounding) {
			x.prompts.refresh(e, h.at)
		}
	}
	if len(h.names) == 0 {
		return
	}
	own := h.own()
	e := x.prompts.at[own]
	if e == nil {
		e = &entry[[]string]{key: own, ends: h.at.Add(h.ttl)}
		x.prompts.add(e)
	}
	x.ended = append(x.ended, e.value...) // what they carry is what the new names do
	e.value, e.upTo, e.ttl = h.names, max(tokens, 0), h.ttl
	x.prompts.refresh(e, h.at)
}
