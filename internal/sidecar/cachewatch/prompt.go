package cachewatch

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/ragpilot/ragpilot/engines/kvevents/residency"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

// prompt is one on its way: a [proxy.Followed].
type prompt struct {
	fleet  *fleet
	placed placed
	extra  residency.Key
	ask    bool   // the engine's tokenizer is asked for the tokens, otherwise they come with the answer
	theirs bool   // the client has asked for the tokens itself: they stay in the answer
	body   []byte // for the tokenizer; it belongs to the one that has taken it

	mu    sync.Mutex // guards what follows
	known bool       // the tokens are registered
	taken bool       // take was called
	over  ending
}

type ending uint8

const (
	running ending = iota
	served
	aborted
)

// prompt begins to follow one; nil if its tokens cannot be had. An answer is asked for tokens if all engines know that, as any of them
// may serve it, if the answer passes here, and if the client has not refused them; otherwise the tokenizer is asked.
func (fl *fleet) prompt(p proxy.Prompt) proxy.Followed {
	var salt, extra, wants gjson.Result
	gjson.ParseBytes(p.Body).ForEach(func(name, value gjson.Result) bool {
		switch name.Str {
		case "cache_salt":
			salt = value
		case "extra_key":
			extra = value
		case "return_token_ids":
			wants = value
		}
		return true
	})
	answer, tokenizer, adapter := true, false, false
	for _, e := range fl.engines {
		has := e.features()
		answer, tokenizer = answer && has.answer, tokenizer || has.tokenize
		adapter = adapter || slices.Contains(has.adapters, p.Model)
	}
	ask := !answer || !p.Passes || wants.Exists() && wants.Type != gjson.True
	if extra.Exists() || ask && !tokenizer { // what extra_key does to the names of blocks is not known
		fl.f.counts.unknown.Add(1)
		return nil
	}
	fl.f.counts.followed.Add(1)
	if ask && !fl.hold(len(p.Body)) {
		fl.f.counts.missing.Add(1)
		return nil
	}
	f := &prompt{
		fleet: fl, ask: ask, theirs: wants.Exists(),
		placed: placed{tenant: p.Tenant, id: p.ID, indexed: p.Indexed, parts: p.Parts, size: p.Size},
	}
	if salt.Type == gjson.String {
		f.extra.Salt = strings.Clone(salt.Str)
	}
	if adapter {
		f.extra.LoRA = p.Model
	}
	if ask {
		f.body = bytes.Clone(p.Body)
	}
	return f
}

// Sent implements [proxy.Followed]. A compressed answer could not be read.
func (p *prompt) Sent() (member, value string, header http.Header) {
	if p.ask || p.theirs {
		return "", "", nil
	}
	return "return_token_ids", "true", http.Header{"Accept-Encoding": {"identity"}}
}

// Answer implements [proxy.Followed].
func (p *prompt) Answer(resp *http.Response) {
	switch {
	case resp.StatusCode != http.StatusOK:
	case p.ask:
		p.enqueue()
	case resp.Header.Get("Content-Encoding") == "":
		p.filter(resp)
	}
}

// Ended implements [proxy.Followed].
func (p *prompt) Ended(computed bool) {
	p.mu.Lock()
	p.over = aborted
	if computed {
		p.over = served
	}
	known := p.known
	p.mu.Unlock()
	switch {
	case known:
		p.report()
	case computed && p.ask: // its answer may have passed elsewhere
		p.enqueue()
	case p.ask:
		if p.take() {
			p.drop()
		}
	case computed:
		p.fleet.f.counts.missing.Add(1)
	}
}

// learned registers the tokens, once.
func (p *prompt) learned(tokens []uint32) {
	p.mu.Lock()
	first := !p.known
	p.known = true
	p.mu.Unlock()
	if !first || len(tokens) == 0 {
		return
	}
	p.fleet.register(p.placed, tokens, p.extra)
	p.fleet.f.counts.learned.Add(1)
	p.report() // it may have ended meanwhile
}

// report reports to the index how the request has ended, if it has.
func (p *prompt) report() {
	p.mu.Lock()
	over := p.over
	p.mu.Unlock()
	switch k := key(p.placed.tenant, p.placed.id); over {
	case served:
		p.fleet.group.Served(k)
	case aborted:
		p.fleet.group.Aborted(k)
	}
}
