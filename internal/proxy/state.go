package proxy

import (
	"strings"
	"sync"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/budget"
	"github.com/ragpilot/ragpilot/internal/lru"
)

// state is what is kept of a tenant. All of it counts in the budget.
type state struct {
	memo *memo

	mu     sync.Mutex // guards all below
	index  *toolIndex // of tool results
	shadow *toolIndex // of those of shadow mode
	// sessions are those that clients gave a name.
	sessions    *lru.Cache[string, *session]
	sessionPart *budget.Part
	// prompts are those that the pilot's index holds, for reports of evictions.
	prompts    *lru.Cache[string, prompted]
	promptPart *budget.Part

	parts []*budget.Part // of all tables
	gone  bool           // nothing counts any more
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

func (p *Proxy) newState(tenant string) *state {
	b := p.opt.Memory
	s := &state{memo: newMemo(b, tenant), sessions: lru.New[string, *session](p.opt.MaxSessions), prompts: lru.New[string, prompted](maxPlans)}
	s.sessionPart = b.Part(tenant, "sessions", s.dropSession)
	s.promptPart = b.Part(tenant, "index", func() int { return p.dropPrompt(s) })
	s.parts = []*budget.Part{s.memo.part, s.sessionPart, s.promptPart}
	return s
}

// close gives the room in the budget back. What requests that run add afterwards does not count, and goes with them.
func (s *state) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	for _, part := range s.parts {
		part.Close()
	}
}

// state returns what is kept of a tenant. Where there are too many, the one that was served longest ago goes.
func (p *Proxy) state(name string) *state {
	p.mu.Lock()
	s, ok := p.tenants.Get(name)
	if ok {
		p.mu.Unlock()
		return s
	}
	s = p.newState(name)
	other, gone, full := p.tenants.Put(name, s)
	p.mu.Unlock()
	if full {
		gone.close()
		p.opt.Pilot.DropTenant(other)
	}
	return s
}

// known returns what is kept of a tenant, nil if nothing is.
func (p *Proxy) known(name string) *state {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, _ := p.tenants.Get(name)
	return s
}

// session returns the session of a name, nil if there is none.
func (s *state) session(name string, b *budget.Budget) *session {
	if name == "" {
		return nil
	}
	defer b.Settle() // without the lock
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.sessions.Get(name)
	if !ok {
		known = new(session)
		name = strings.Clone(name) // not all of the headers
		s.sessionPart.Add(sessionBytes + len(name))
		if old, _, full := s.sessions.Put(name, known); full {
			s.sessionPart.Add(-sessionBytes - len(old))
		}
	}
	return known
}

// dropSession is for the budget.
func (s *state) dropSession() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, _, ok := s.sessions.DropOldest()
	if !ok {
		return 0
	}
	s.sessionPart.Add(-sessionBytes - len(name))
	return sessionBytes + len(name)
}

// forgetSession takes a name away, and returns the session that had it.
func (s *state) forgetSession(name string) (*session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	named, ok := s.sessions.Get(name)
	if ok {
		s.sessions.Delete(name)
		s.sessionPart.Add(-sessionBytes - len(name))
	}
	return named, ok
}

// remember notes in which scope a request of so many blocks was planned, for reports of evictions.
func (p *Proxy) remember(id string, scope contextpilot.Scope, blocks int) {
	s := p.state(scope.Tenant)
	defer p.opt.Memory.Settle() // without the lock
	s.mu.Lock()
	defer s.mu.Unlock()
	now := prompted{scope: scope, bytes: promptBytes + len(id) + len(scope.Replica) + blockBytes*blocks}
	if old, ok := s.prompts.Get(id); ok {
		s.promptPart.Add(-old.bytes)
	}
	s.promptPart.Add(now.bytes)
	if _, old, full := s.prompts.Put(id, now); full {
		s.promptPart.Add(-old.bytes)
	}
}

// scopeOf returns the scope in which a prompt was planned.
func (p *Proxy) scopeOf(name prompt) (scope contextpilot.Scope, ok bool) {
	s := p.known(name.tenant)
	if s == nil {
		return scope, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.prompts.Get(name.id)
	return found.scope, ok
}

// forgetPrompt removes a prompt that has left the cache, and returns the scope in which it was planned.
func (p *Proxy) forgetPrompt(name prompt) (scope contextpilot.Scope, ok bool) {
	s := p.known(name.tenant)
	if s == nil {
		return scope, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.prompts.Get(name.id)
	if ok {
		s.prompts.Delete(name.id)
		s.promptPart.Add(-found.bytes)
	}
	return found.scope, ok
}

// dropPrompt is for the budget: the prompt leaves the pilot's index, too.
func (p *Proxy) dropPrompt(s *state) int {
	s.mu.Lock()
	id, old, ok := s.prompts.DropOldest()
	if ok {
		s.promptPart.Add(-old.bytes)
	}
	s.mu.Unlock()
	if !ok {
		return 0
	}
	p.gone(old.scope, id)
	return old.bytes
}
