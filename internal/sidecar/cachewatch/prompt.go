package cachewatch

import (
	"bytes"
	"net/http"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/ragpilot/ragpilot/engines/kvevents/residency"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

// way is how a prompt's tokens become known.
type way uint8

const (
	noWay  way = iota
	answer     // the engine is asked to put them into its answer
	ask        // the engine's tokenizer is asked
)

// prompt is one on its way: a [proxy.Followed].
type prompt struct {
	fleet  *fleet
	placed placed
	extra  residency.Key
	way    way
	theirs bool   // the client has asked for the tokens itself: they stay in the answer
	body   []byte // for the tokenizer, of whoever has taken it

	mu    sync.Mutex // guards what follows
	known bool       // the tokens are registered
	taken bool       // somebody sees to the body
	over  ending
}

type ending uint8

const (
	running ending = iota
	served
	aborted
)

// prompt begins to follow one; nil if its tokens cannot be had.
func (fl *fleet) prompt(p proxy.Prompt) proxy.Followed {
	way, adapter := fl.way(p.Model)
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
	switch {
	case extra.Exists(): // what it does to the names of blocks is not known
		way = noWay
	case way == answer && wants.Exists() && wants.Type != gjson.True, way == answer && !p.Passes:
		way = ask
	}
	if way == ask && !fl.tokenizer() {
		way = noWay
	}
	if way == noWay {
		fl.f.counts.unknown.Add(1)
		return nil
	}
	fl.f.counts.followed.Add(1)
	if way == ask && !fl.hold(len(p.Body)) {
		fl.f.counts.missing.Add(1)
		return nil
	}
	f := &prompt{
		fleet: fl, way: way, theirs: wants.Exists(),
		placed: placed{tenant: p.Tenant, id: p.ID, indexed: p.Indexed, parts: p.Parts, size: p.Size},
	}
	if salt.Type == gjson.String {
		f.extra.Salt = strings.Clone(salt.Str)
	}
	if adapter {
		f.extra.LoRA = p.Model
	}
	if way == ask {
		f.body = bytes.Clone(p.Body)
	}
	return f
}

// Sent implements [proxy.Followed]. A compressed answer could not be read.
func (p *prompt) Sent() (member, value string, header http.Header) {
	if p.way != answer || p.theirs {
		return "", "", nil
	}
	return "return_token_ids", "true", http.Header{"Accept-Encoding": {"identity"}}
}

// Answer implements [proxy.Followed].
func (p *prompt) Answer(resp *http.Response) {
	switch {
	case resp.StatusCode != http.StatusOK:
	case p.way == ask:
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
		p.told()
	case computed && p.way == ask: // its answer may have passed elsewhere
		p.enqueue()
	case p.way == ask:
		if p.take() { // nobody will ask
			p.drop()
		}
	case computed:
		p.fleet.f.counts.missing.Add(1)
	}
}

// learned is given the tokens.
func (p *prompt) learned(tokens []uint32) {
	p.mu.Lock()
	first := !p.known
	p.known = true
	over := p.over
	p.mu.Unlock()
	if !first || len(tokens) == 0 {
		return
	}
	p.fleet.register(p.placed, tokens, p.extra)
	p.fleet.f.counts.learned.Add(1)
	if over != running {
		p.told()
		return
	}
	p.mu.Lock()
	over = p.over
	p.mu.Unlock()
	if over != running { // it ended while it was registered
		p.told()
	}
}

// told tells the index how the request has ended.
func (p *prompt) told() {
	p.mu.Lock()
	over := p.over
	p.mu.Unlock()
	k := key(p.placed.tenant, p.placed.id)
	if over == served {
		p.fleet.group.Served(k)
		return
	}
	p.fleet.group.Aborted(k)
}
