package diagnosis

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ragpilot/ragpilot/internal/base/lru"
	"github.com/ragpilot/ragpilot/internal/sidecar/dashboard"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
	"github.com/ragpilot/ragpilot/prefixdiff"
)

// tenant is what is remembered of one.
type tenant struct {
	index   *prefixdiff.Index
	bytes   int64                    // when it was last looked at
	origins *lru.Cache[int, *origin] // by number in the index
	ids     *lru.Cache[string, int]  // numbers by the engine's ID
}

// origin is an earlier prompt.
type origin struct {
	id, model string
	begun     time.Time // the first byte of its answer
	gone      time.Time // when the engine reported that it evicted it; zero: it did not
	left      int       // tokens that were left then
	parent    int       // number of the earlier prompt that it has most in common with; -1: none, or the engine reports on it itself
	common    int       // tokens that it has in common with that
}

const (
	// keptOrigins is how many earlier prompts of a tenant are known by name.
	keptOrigins = 1024
	// originBytes is about what each takes.
	originBytes = 400
)

// prompt is one on its way: a proxy.Diagnosed.
type prompt struct {
	m         *Misses
	sent      proxy.SentPrompt // Body nil: it is not compared
	size      int64            // of the body
	ended     proxy.Ended
	forgotten bool // guarded by m.mu

	tenant  *tenant             // it is in the index of
	request *prefixdiff.Request // nil: it is not in the index
	number  int
	tokens  func() int // of the prompt, estimated
}

// release lets go of the body.
func (p *prompt) release() {
	if p.sent.Body != nil {
		p.sent.Body, p.request, p.tokens = nil, nil, nil
		p.m.held.Add(-p.size)
	}
}

// guarded keeps an error of the comparison from ending the server. Its text may quote the prompt, so it is not logged.
func (p *prompt) guarded(f func()) {
	defer func() {
		if recover() != nil {
			p.m.count.failed.Inc()
			p.m.opt.Log.Error("a prompt could not be compared with earlier ones", "request", p.ended.LogID)
		}
	}()
	f()
}

// Miss implements proxy.Diagnosed.
func (p *prompt) Miss() (header string) {
	p.guarded(func() {
		if f, ok := p.compare(); ok {
			header = fmt.Sprintf("cause=%s; path=%s; token=%d; lost=%d", f.Cause, cutPath(f.Path), f.Token, f.LostTokens)
		}
	})
	return header
}

// Ended implements proxy.Diagnosed.
func (p *prompt) Ended(e proxy.Ended) {
	e.Theirs.Reason = clip(e.Theirs.Reason)
	p.ended = e
	if e.Theirs.Reason != "" {
		p.theirs()
	}
	switch {
	case p.sent.Body == nil:
		p.m.mu.Lock()
		p.m.drop()
		p.m.mu.Unlock()
	case !e.Computed:
		p.release()
	default:
		p.m.enqueue(p)
	}
}

// enter puts the prompt into its tenant's index. It reports whether it is there.
func (p *prompt) enter(seen prefixdiff.Seen) bool {
	if p.request != nil {
		p.request.See(seen)
		return true
	}
	if p.sent.Body == nil {
		return false
	}
	parsed, err := prefixdiff.Parse(p.sent.Body)
	if err != nil {
		p.m.count.unread.Inc()
		return false
	}
	t, err := p.m.tenantOf(p)
	if err != nil {
		return false
	}
	p.tenant, p.tokens = t, parsed.Tokens
	r := t.index.Prepare(parsed)
	r.See(seen)
	p.number, p.request = r.Insert(), r
	return true
}

// compare looks for a difference from earlier prompts without knowing what the engine had.
func (p *prompt) compare() (prefixdiff.Finding, bool) {
	if !p.enter(prefixdiff.Seen{Replica: p.sent.Replica}) {
		return prefixdiff.Finding{}, false
	}
	return p.request.Explain()
}

// diagnose says why the prompt was not in the cache, once the answer has ended.
func (p *prompt) diagnose() {
	seen := prefixdiff.Seen{Replica: p.sent.Replica}
	if p.m.opt.BlockSize != nil {
		seen.BlockSize = p.m.opt.BlockSize(p.sent.Model)
	}
	if !p.enter(seen) {
		return
	}
	scale := 1.0 // tokens as the engine counts them, by tokens as they are estimated
	if p.ended.Prompt > 0 {
		if n := p.tokens(); n > 0 {
			scale = float64(p.ended.Prompt) / float64(n)
		}
		seen.BlockSize = int(math.Round(float64(seen.BlockSize) / scale))
	}
	if p.ended.Cached >= 0 {
		seen.Known, seen.Cached = true, int(float64(p.ended.Cached)/scale)
	}
	p.request.See(seen)
	f, ok := p.request.Explain()
	p.note(p.parent())
	if ok && f.Path == "" && f.Cause != prefixdiff.BelowBlock {
		f, ok = p.fromEngine(f, seen)
	}
	p.m.compared(p)
	if ok {
		p.found(f, scale)
	}
}

// note remembers where the number comes from.
func (p *prompt) note(parent, common int) {
	m, t := p.m, p.tenant
	m.mu.Lock()
	defer m.mu.Unlock()
	t.origins.Put(p.number, &origin{
		id: strings.Clone(p.ended.ID), model: p.sent.Model, begun: p.ended.First, parent: parent, common: common,
	})
	if id := p.sent.EngineID; id != "" {
		t.ids.Put(strings.Clone(id), p.number)
	}
}

// parent returns the earlier prompt whose end in the cache is the end of this one, too: engines report on some prompts alone.
func (p *prompt) parent() (number, common int) {
	p.m.mu.Lock()
	some := p.tenant.ids.Len() > 0
	p.m.mu.Unlock()
	if !some || p.sent.EngineID != "" {
		return -1, 0
	}
	if number, common, ok := p.request.Nearest(); ok {
		return number, common
	}
	return -1, 0
}

// fromEngine looks for a sign of the engine why it had not what an earlier prompt begins with, too. Prompts that are computed at the same
// time could not find each other.
func (p *prompt) fromEngine(f prefixdiff.Finding, seen prefixdiff.Seen) (prefixdiff.Finding, bool) {
	m := p.m
	m.mu.Lock()
	o, ok := p.tenant.origins.Peek(f.Against)
	if ok && !o.begun.Before(p.sent.Sent) {
		m.mu.Unlock()
		return f, false
	}
	if ok {
		seen.Evicted = p.evicted(o, f.LostTokens)
	}
	m.mu.Unlock()
	if !seen.Evicted {
		return f, true
	}
	p.request.See(seen)
	return p.request.Explain()
}

// evicted reports whether the engine said that it evicted the first tokens of an earlier prompt, between its answer and this one's. The
// lock is held.
func (p *prompt) evicted(o *origin, tokens int) bool {
	since := o.begun
	before := func(at time.Time) bool { return at.After(since) && !at.After(p.ended.First) }
	if before(p.m.emptied[""]) || before(p.m.emptied[o.model]) {
		return true
	}
	for range keptOrigins {
		if before(o.gone) && o.left <= tokens/2 {
			return true
		}
		parent, ok := p.tenant.origins.Peek(o.parent)
		if !ok || o.common < tokens/2 {
			return false
		}
		o = parent
	}
	return false
}

// found notes what was found.
func (p *prompt) found(f prefixdiff.Finding, scale float64) {
	x := dashboard.Miss{
		Source: ours, Cause: string(f.Cause), Path: p.m.path(f.Path),
		Token: int(math.Round(float64(f.Token) * scale)), Lost: new(int(math.Round(float64(f.LostTokens) * scale))),
	}
	if p.m.opt.KeepTexts && f.Cause != prefixdiff.Salt {
		x.Was, x.Is = whole(f.Was), whole(f.Is)
	}
	p.m.mu.Lock()
	if o, ok := p.tenant.origins.Peek(f.Against); ok {
		x.Against = o.id
	}
	p.m.mu.Unlock()
	p.m.add(p, x, cutPath(f.Path))
}

// whole returns a text without the parts of characters at its ends.
func whole(s string) string { return strings.Clone(strings.ToValidUTF8(s, "")) }

// maxName is the length in bytes of the longest name that is kept.
const maxName = 128

// clip copies the beginning of a name.
func clip(s string) string {
	if len(s) > maxName {
		s = s[:maxName]
		for !utf8.ValidString(s) && len(s) > maxName-utf8.UTFMax {
			s = s[:len(s)-1]
		}
	}
	return strings.Clone(s)
}
