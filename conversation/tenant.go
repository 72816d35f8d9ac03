package conversation

import (
	"strings"
	"sync"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/base/budget"
	"github.com/ragpilot/ragpilot/internal/base/lru"
)

// tenant is what is kept of a tenant. All of it counts in the budget.
type tenant struct {
	memo *memo

	mu sync.Mutex // guards all below
	// sessions are those that clients gave a name.
	sessions *lru.Cache[string, *session]
	// prompts are those that the pilot's index holds, for reports of evictions.
	prompts *lru.Cache[string, prompted]

	parts []*budget.Part // of all tables
}

// prompted is a prompt in the pilot's index.
type prompted struct {
	scope contextpilot.Scope
	bytes int
}

const (
	// sessionBytes is what a named session takes beside its name.
	sessionBytes = 160
	// promptBytes is what a planned prompt takes beside its ID, here and in the pilot's index, and blockBytes what each of its
	// blocks takes there.
	promptBytes, blockBytes = 500, 48
	// maxPlans bounds the plans of a tenant whose eviction can be reported to the pilot.
	maxPlans = 200_000
)

func (e *Engine) newTenant(name string) *tenant {
	b := e.opt.Budget
	t := &tenant{memo: newMemo(b, name)}
	sessions := b.Part(name, "sessions", t.dropSession)
	t.sessions = lru.With(lru.Options[string, *session]{Entries: max(e.opt.MaxSessions, 1), Weigh: sessionWeight, Changed: sessions.Add})
	prompts := b.Part(name, "index", func() int { return e.dropPrompt(t) })
	weigh := func(_ string, p prompted) int { return p.bytes }
	t.prompts = lru.With(lru.Options[string, prompted]{Entries: maxPlans, Weigh: weigh, Changed: prompts.Add})
	t.parts = []*budget.Part{t.memo.part, sessions, prompts}
	return t
}

// close gives the room in the budget back. What requests that run add afterwards does not count, and goes with them.
func (t *tenant) close() {
	for _, part := range t.parts {
		part.Close()
	}
}

// tenant returns what is kept of a tenant. Where there are too many, the one that was served longest ago goes.
func (e *Engine) tenant(name string) *tenant {
	e.mu.Lock()
	t, ok := e.tenants.Get(name)
	if ok {
		e.mu.Unlock()
		return t
	}
	t = e.newTenant(name)
	other, gone, full := e.tenants.Put(name, t)
	e.mu.Unlock()
	if full {
		gone.close()
		e.pilot.DropTenant(other)
	}
	return t
}

// known returns what is kept of a tenant, nil if nothing is.
func (e *Engine) known(name string) *tenant {
	e.mu.Lock()
	defer e.mu.Unlock()
	t, _ := e.tenants.Get(name)
	return t
}

// session returns the session of a name, nil if there is none.
func (t *tenant) session(name string, b *budget.Budget) *session {
	if name == "" {
		return nil
	}
	defer b.Settle() // without the lock
	t.mu.Lock()
	defer t.mu.Unlock()
	known, ok := t.sessions.Get(name)
	if !ok {
		known = new(session)
		t.sessions.Put(strings.Clone(name), known) // not all of the headers
	}
	return known
}

// dropSession is for the budget.
func (t *tenant) dropSession() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	name, s, ok := t.sessions.DropOldest()
	if !ok {
		return 0
	}
	return sessionWeight(name, s)
}

func sessionWeight(name string, _ *session) int { return sessionBytes + len(name) }

// forgetSession takes a name away, and returns the session that had it.
func (t *tenant) forgetSession(name string) (*session, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	named, ok := t.sessions.Peek(name)
	t.sessions.Delete(name)
	return named, ok
}
